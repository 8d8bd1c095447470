// Summarizes a document for `mcp-host openapi` and `mcp-host add openapi`.
import type { Services } from '../../core/internal.ts'
import { findMissingSchemes } from './credentials.ts'
import { createLoad } from './document/load.ts'
import { withLocation } from './document/place.ts'
import type { Source } from './options.ts'
import { readApi } from './read-api.ts'
import type { ApiTool } from './read-tool.ts'
import { reasonAgainst } from './request.ts'

export type Survey = Awaited<ReturnType<typeof surveyDocument>>

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
export async function surveyDocument(source: Source, directory: string, openConnections: Services['openConnections']) {
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
        /** Sizes of the schemas, bytes. */
        input: input.bytes,
        ...(output && { output: output.bytes }),
        /** Parts of the schemas that accept any value because of their size. */
        simplified: [...input.simplified, ...(output?.simplified ?? [])],
        /** The security schemes that the operation requires. */
        ...(requires !== undefined && { requires }),
      }
    }),
    leftOut: faulty.map(({ id, reason }) => ({ operation: id, reason })),
    skipped: skipped.map(({ id, reason }) => ({ operation: id, reason })),
    notes: [...api.notes.values()].map(({ place, text }) => withLocation(place, text)),
    securitySchemes: Object.fromEntries(
      [...api.securitySchemes].map(([name, { type }]): [string, string] => [name, type]),
    ),
    /** Servers to which the host sends no requests, with the reasons. */
    blocked: await findBlocked(tools, open),
  }
}
