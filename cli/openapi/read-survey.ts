// Reads an OpenAPI document as the plugin `openapi` does, with its options from the command line.
import { openConnections } from '../../client/node/fetch.ts'
import { validateValue } from '../../core/config/validate-value.ts'
import { StartError } from '../../core/http/errors.ts'
import { findMissingSchemes } from '../../plugins/openapi/credentials.ts'
import { createFetchText } from '../../plugins/openapi/document/fetch-text.ts'
import { LoadError } from '../../plugins/openapi/document/load.ts'
import { DocumentError, located } from '../../plugins/openapi/document/place.ts'
import { openapi } from '../../plugins/openapi/index.ts'
import type { HttpMethod, Operation } from '../../plugins/openapi/operation.ts'
import { METHODS, type Source } from '../../plugins/openapi/options.ts'
import { readApi } from '../../plugins/openapi/read-api.ts'
import { reasonAgainst } from '../../plugins/openapi/request.ts'
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

interface LeftOut {
  readonly operation: string
  readonly reason: string
}

export interface Survey {
  readonly document: string
  readonly version: string
  readonly operations: number
  readonly tools: ReadonlyArray<{
    readonly name: string
    readonly operation: string
    /** Size of the input schema, bytes. */
    readonly input: number
    readonly output?: number
    /** Parts of the schemas that accept any value because of their size. */
    readonly simplified: readonly string[]
    /** The security schemes that the operation requires. */
    readonly requires?: string
  }>
  readonly leftOut: readonly LeftOut[]
  readonly skipped: readonly LeftOut[]
  readonly notes: readonly string[]
  readonly securitySchemes: Readonly<Record<string, string>>
  /** Servers to which the host sends no requests, with the reasons. */
  readonly blocked: ReadonlyArray<{ readonly server: string; readonly reason: string }>
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

/** Maximum blocked servers that are reported. */
const MAX_BLOCKED = 10

async function findBlocked(servers: Iterable<string>, allowHosts: readonly string[]): Promise<Survey['blocked']> {
  const connections = await openConnections({ allowHosts, connections: 1 })
  const blocked = [...servers].flatMap(server => {
    const reason = reasonAgainst(connections, server)
    return reason === undefined ? [] : { server, reason }
  })
  await connections.close()
  return blocked.slice(0, MAX_BLOCKED)
}

/** Throws a StartError for options that are not valid, and for a document that cannot be used. */
export async function readSurvey(document: string, options: SurveyOptions, directory: string): Promise<Survey> {
  const { methods, ...given } = options
  const defined = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  const plugin = { documents: { api: { document, ...defined, methods: methodsOf(methods) } } }
  const [fault] = validateValue(plugin, openapi.plugin.options, [])
  if (fault) throw usage(`${fault.path.slice(2).join('.')}: found ${fault.found}; expected ${fault.expected}`)
  const source = { ...STANDARD, ...plugin.documents.api } as unknown as Source
  const allowHosts = source.allowHosts ?? []
  const fetchText = createFetchText(() => openConnections({ allowHosts, connections: 1 }))
  try {
    const { api, candidates, tools, skipped, faulty } = await readApi(source, { directory, fetchText, reads: () => {} })
    const servers = new Set(tools.map(({ operation }) => operation.baseUrl))
    const requirementOf = (operation: Operation) => {
      const requires = findMissingSchemes(operation, api.securitySchemes)
      return requires === undefined ? {} : { requires }
    }
    return {
      document,
      version: api.version,
      operations: candidates.length,
      tools: tools.map(({ name, operation, input, output }) => ({
        name,
        operation: `${operation.method.toUpperCase()} ${operation.path}`,
        input: input.bytes,
        ...(output && { output: output.bytes }),
        simplified: [...input.simplified, ...(output?.simplified ?? [])],
        ...requirementOf(operation),
      })),
      leftOut: faulty.map(({ id, reason }) => ({ operation: id, reason })),
      skipped: skipped.map(({ id, reason }) => ({ operation: id, reason })),
      notes: [...api.notes.values()].map(({ place, text }) => located(place, text)),
      securitySchemes: Object.fromEntries([...api.securitySchemes].map(([name, { type }]) => [name, type])),
      blocked: await findBlocked(servers, allowHosts),
    }
  } catch (error) {
    if (error instanceof LoadError) throw new StartError('MH3401', error.message, { exitCode: 2 })
    if (!(error instanceof DocumentError)) throw error
    throw new StartError('MH3402', located(error.place, error.fault), { exitCode: 2 })
  }
}
