// Reads an OpenAPI document as the plugin `openapi` does, with its options from the command line.
import { openConnections } from '../../client/node/fetch.ts'
import { defined } from '../../client/text.ts'
import { validateValue } from '../../core/config/validate-value.ts'
import { StartError } from '../../core/http/errors.ts'
import { LoadError } from '../../plugins/openapi/document/load.ts'
import { DocumentError, withLocation } from '../../plugins/openapi/document/place.ts'
import { openapi } from '../../plugins/openapi/index.ts'
import type { HttpMethod } from '../../plugins/openapi/operation.ts'
import { METHODS, type Source } from '../../plugins/openapi/options.ts'
import { type Survey, surveyDocument } from '../../plugins/openapi/survey.ts'
import { usage } from '../context.ts'

function methodsOf(text: string | undefined): HttpMethod[] {
  if (text === undefined) return ['get']
  if (text === 'all') return [...METHODS]
  return text.split(',').map(word => {
    const method = METHODS.find(one => one === word.trim().toLowerCase())
    if (method === undefined) throw usage(`--methods: "${word}" is not one of ${METHODS.join(', ')}`)
    return method
  })
}

const STANDARD = { prefix: '', arguments: 'flat', output: 'omit', maxSchema: '32kb', forwardHeaders: [] } as const

/** Options of a document. `methods`: HTTP methods, separated by commas; `all` for all. */
export type SurveyOptions = Readonly<Record<string, unknown>> & { readonly methods?: string | undefined }

/** Throws a StartError for options that are not valid, and for a document that cannot be used. */
export async function readSurvey(
  document: string,
  { methods, ...options }: SurveyOptions,
  directory: string,
): Promise<Survey> {
  const plugin = { documents: { api: { document, ...defined(options), methods: methodsOf(methods) } } }
  const [fault] = validateValue(plugin, openapi.plugin.options, [])
  if (fault) throw usage(`${fault.path.slice(2).join('.')}: found ${fault.found}; expected ${fault.expected}`)
  const source = { ...STANDARD, ...plugin.documents.api } as unknown as Source
  try {
    return await surveyDocument(source, directory, openConnections)
  } catch (error) {
    if (error instanceof LoadError) throw new StartError('MH3401', error.message, { exitCode: 2 })
    if (!(error instanceof DocumentError)) throw error
    throw new StartError('MH3402', withLocation(error.place, error.fault), { exitCode: 2 })
  }
}
