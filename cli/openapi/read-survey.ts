// Reads an OpenAPI document as the plugin `openapi` does, with its options from the command line.
import { openConnections } from '../../client/node/fetch.ts'
import { validateValue } from '../../core/config/validate-value.ts'
import { StartError } from '../../core/http/errors.ts'
import { LoadError } from '../../plugins/openapi/document/load.ts'
import { DocumentError, located } from '../../plugins/openapi/document/place.ts'
import { openapi } from '../../plugins/openapi/index.ts'
import type { HttpMethod } from '../../plugins/openapi/operation.ts'
import { METHODS, type Source } from '../../plugins/openapi/options.ts'
import { type Survey, surveyDocument } from '../../plugins/openapi/survey.ts'
import { usage } from '../context.ts'

export interface SurveyOptions {
  readonly include?: readonly string[] | undefined
  readonly exclude?: readonly string[] | undefined
  /** HTTP methods, separated by commas; `all` for all. */
  readonly methods?: string | undefined
  readonly overlay?: readonly string[] | undefined
  readonly baseUrl?: string | undefined
  readonly maxSchema?: string | undefined
  readonly allowHosts?: readonly string[] | undefined
  readonly output?: Source['output'] | undefined
}

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

/** Throws a StartError for options that are not valid, and for a document that cannot be used. */
export async function readSurvey(document: string, options: SurveyOptions, directory: string): Promise<Survey> {
  const { methods, ...given } = options
  const defined = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  const plugin = { documents: { api: { document, ...defined, methods: methodsOf(methods) } } }
  const [fault] = validateValue(plugin, openapi.plugin.options, [])
  if (fault) throw usage(`${fault.path.slice(2).join('.')}: found ${fault.found}; expected ${fault.expected}`)
  const source = { ...STANDARD, ...plugin.documents.api } as unknown as Source
  try {
    return await surveyDocument(source, directory, openConnections)
  } catch (error) {
    if (error instanceof LoadError) throw new StartError('MH3401', error.message, { exitCode: 2 })
    if (!(error instanceof DocumentError)) throw error
    throw new StartError('MH3402', located(error.place, error.fault), { exitCode: 2 })
  }
}
