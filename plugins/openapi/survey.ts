// Summarizes a document for `mcp-host openapi` and `mcp-host add openapi`.
import type { Services } from '../../core/internal.ts'
import { findMissingSchemes } from './credentials.ts'
import { createLoad } from './document/load.ts'
import { located } from './document/place.ts'
import type { Source } from './options.ts'
import { readApi } from './read-api.ts'
import type { ApiTool } from './read-tool.ts'
import { reasonAgainst } from './request.ts'

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

/** Maximum blocked servers that are reported. */
const MAX_BLOCKED = 10

async function findBlocked(tools: readonly ApiTool[], open: () => ReturnType<Services['openConnections']>) {
  const connections = await open()
  const servers = [...new Set(tools.map(({ operation }) => operation.baseUrl))]
  const blocked = servers.flatMap(server => {
    const reason = reasonAgainst(connections, server)
    return reason === undefined ? [] : { server, reason }
  })
  await connections.close()
  return blocked.slice(0, MAX_BLOCKED)
}

/** Throws a LoadError or a DocumentError for a document that cannot be used. */
export async function surveyDocument(
  source: Source,
  directory: string,
  openConnections: Services['openConnections'],
): Promise<Survey> {
  const { document, allowHosts = [] } = source
  const open = () => openConnections({ allowHosts, connections: 1 })
  const settings = { directory, load: createLoad(open, () => {}) }
  const { api, candidates, tools, skipped, faulty } = await readApi(source, settings)
  return {
    document,
    version: api.version,
    operations: candidates.length,
    tools: tools.map(({ name, operation, input, output }) => {
      const requires = findMissingSchemes(operation, api.securitySchemes)
      return {
        name,
        operation: `${operation.method.toUpperCase()} ${operation.path}`,
        input: input.bytes,
        ...(output && { output: output.bytes }),
        simplified: [...input.simplified, ...(output?.simplified ?? [])],
        ...(requires !== undefined && { requires }),
      }
    }),
    leftOut: faulty.map(({ id, reason }) => ({ operation: id, reason })),
    skipped: skipped.map(({ id, reason }) => ({ operation: id, reason })),
    notes: [...api.notes.values()].map(({ place, text }) => located(place, text)),
    securitySchemes: Object.fromEntries([...api.securitySchemes].map(([name, { type }]) => [name, type])),
    blocked: await findBlocked(tools, open),
  }
}
