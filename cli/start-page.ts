// What `start` prints: what is served, to whom, where, and two commands that work as printed.
import type { Host, RouteSummary } from '../core/create-host.ts'
import { META, MODERN_REVISION } from '../core/transport.ts'
import { version } from './version.ts'

/** Columns padded to their widest cell. */
function table(rows: readonly string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => (row[column] ?? '').length)))
  return rows
    .map(row =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('   ')
        .trimEnd(),
    )
    .join('\n')
}

function describeRevisions({ revisions, stateless }: RouteSummary): string {
  const [newest, ...older] = revisions
  if (newest === undefined) return 'none: no transport plugin is on'
  if (older.length === 0) return newest
  return `${newest} and older, to ${older.at(-1)}${stateless ? ' (stateless)' : ''}`
}

/** Each route with its toolsets, revisions and callers. */
export function routeTable(routes: readonly RouteSummary[]): string {
  const rows = routes.map(route => [route.path, route.toolsets.join(', '), describeRevisions(route), route.callers])
  return table([['route', 'toolsets', 'protocol revisions', 'who may call'], ...rows])
}

/** A word of a shell command; quoted where it must be. */
const shellWord = (text: string): string => (/^[\w.:/~%-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)

function curlLine(url: string): string {
  const body = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/list',
    params: { _meta: { [META.protocolVersion]: MODERN_REVISION, [META.clientCapabilities]: {} } },
  }
  return [
    `curl -s ${url} -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream'`,
    `-H 'MCP-Protocol-Version: ${MODERN_REVISION}' -H 'Mcp-Method: tools/list' -d '${JSON.stringify(body)}'`,
  ].join(' \\\n  ')
}

/** The route to show commands for: a plain address that is open to anyone; `/mcp`, which every client knows, if there is one. */
function showcase(routes: readonly RouteSummary[]): RouteSummary | undefined {
  const plain = routes.filter(({ path, callers }) => !path.includes(':') && callers === 'anyone')
  return plain.find(({ path }) => path.endsWith('/mcp')) ?? plain[0] ?? routes[0]
}

/** Who serves, where several processes do: their ids. */
export interface Processes {
  readonly primary: number
  readonly workers: readonly number[]
}

/** The page of one process. */
export const startPage = (host: Pick<Host, 'url' | 'routes'>): string => page(host, [])

/** The page of several. */
export const workersPage = (host: Pick<Host, 'url' | 'routes'>, { primary, workers }: Processes): string =>
  page(host, [
    `${workers.length} ${workers.length === 1 ? 'worker' : 'workers'}: pid ${workers.join(', ')}`,
    `primary: pid ${primary}; SIGHUP reads the config anew, SIGTERM stops`,
    '',
  ])

function page({ url, routes }: Pick<Host, 'url' | 'routes'>, processes: readonly string[]): string {
  const address = shellWord(showcase(routes)?.url ?? url)
  return [
    `mcp-host ${version}`,
    '',
    routeTable(routes),
    '',
    'Try it:',
    curlLine(address),
    `npx -y @modelcontextprotocol/inspector --cli ${address} --transport http --method tools/list`,
    '',
    ...processes,
    `listening on ${url}`,
  ].join('\n')
}
