// The output of `start`: routes, access, URLs, and commands that can be copied.

import { printable } from '../client/text.ts'
import { shortName } from '../core/config/problems.ts'
import type { Host } from '../core/host.ts'
import type { RouteSummary } from '../core/mcp/route-summary.ts'
import { META, MODERN_REVISION } from '../core/transport.ts'
import { type Starter, selfCommand } from './context.ts'
import { shellWord, tableLines } from './text.ts'
import { version } from './version.ts'

function describeRevisions({ revisions, stateless }: RouteSummary): string {
  const [newest, ...older] = revisions
  if (newest === undefined) return 'none (no transport plugin)'
  if (older.length === 0) return newest
  return `${older.at(-1)} to ${newest}${stateless ? ' (stateless)' : ''}`
}

/** Names toolsets whose tools are unknown now. */
function describeTools({ tools, sources }: RouteSummary): string {
  const count = tools === 1 ? '1 tool' : `${tools} tools`
  const unknown = sources.flatMap(({ toolset, isEmpty }) => (isEmpty ? toolset : []))
  if (unknown.length === 0) return count
  return tools === 0 ? `tools of ${unknown.join(', ')}` : `${count}, and those of ${unknown.join(', ')}`
}

/** The state of each toolset that a plugin provides at run time. */
function sourceLines(routes: readonly RouteSummary[]): string[] {
  const states = new Map(
    routes.flatMap(({ sources }) => sources.map(({ toolset, state }) => [toolset, state] as const)),
  )
  if (states.size === 0) return []
  const rows = [...states].map(([toolset, state]) => [toolset, printable(state)])
  return [...tableLines(['Toolset', 'State'], rows, undefined, '   '), '']
}

export function routeTable(routes: readonly RouteSummary[]): string {
  const rows = routes.map(route => {
    return [route.path, describeTools(route), route.toolsets.join(', '), describeRevisions(route), route.callers]
  })
  return tableLines(['Route', 'Serves', 'Toolsets', 'Protocol versions', 'Access'], rows, undefined, '   ').join('\n')
}

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

/** The route for example commands: one without parameters, preferably `/mcp`. */
export function showcase(routes: readonly RouteSummary[]): RouteSummary | undefined {
  const served = routes.filter(({ revisions }) => revisions.length > 0)
  const plain = served.filter(({ path }) => !path.includes(':'))
  return plain.find(({ path }) => path.endsWith('/mcp')) ?? plain[0] ?? served[0]
}

const argumentWord = ([name, value]: [string, unknown]): string =>
  shellWord(`${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)

function callLine({ url, example }: RouteSummary, self: string): string {
  const address = shellWord(url)
  if (!example) return `${self} list ${address}`
  const words = Object.entries(example.arguments).map(argumentWord)
  return [`${self} call ${address} ${shellWord(example.tool)}`, ...words].join(' ')
}

const reached = (route: RouteSummary): RouteSummary =>
  route.revisions.includes(MODERN_REVISION) ? route : { ...route, url: `${route.url.replace(/\/$/, '')}/sse` }

function openLines(route: RouteSummary, self: string): string[] {
  const address = shellWord(route.url)
  if (!route.revisions.includes(MODERN_REVISION)) return [callLine(reached(route), self)]
  const inspector = `npx -y @modelcontextprotocol/inspector --cli ${address} --transport http --method tools/list`
  return [curlLine(address), inspector, callLine(route, self)]
}

/** Without metadata, clients cannot discover how to log in. */
function guardedLines(route: RouteSummary, self: string): string[] {
  const known = reached(route)
  const address = shellWord(known.url)
  if (!route.tellsLogin) return [`${self} doctor ${address}`]
  return [`${self} login ${address}`, callLine(known, self)]
}

function tryLines(routes: readonly RouteSummary[], self: string): string[] {
  const open = showcase(routes.filter(route => route.open))
  const guarded = showcase(routes.filter(route => !route.open))
  const connected = open ?? guarded
  if (!connected) return []
  const connect = `${self} connect claude-code ${shellWord(reached(connected).url)}`
  return [
    ...(open ? ['Try it:', ...openLines(open, self), ''] : []),
    ...(guarded ? [`Log in and call ${guarded.path}:`, ...guardedLines(guarded, self), ''] : []),
    'Connect a client (also claude-desktop, cursor, vscode, inspector):',
    connect,
    '',
  ]
}

interface Processes {
  readonly primary: number
  readonly workers: readonly number[]
}

type Page = Pick<Host, 'url' | 'routes'>

export const startPage = (host: Page, file: string, starter: Starter): string => page(host, file, starter, [])

export const workersPage = (
  host: Page & { readonly file: string },
  { primary, workers }: Processes,
  starter: Starter,
): string =>
  page(host, host.file, starter, [
    `${workers.length} ${workers.length === 1 ? 'worker' : 'workers'}: pid ${workers.join(', ')}`,
    `primary: pid ${primary}; SIGHUP reloads the config, SIGTERM stops`,
    '',
  ])

export const configLine = (file: string, cwd: string): string => `config ${shortName(file, cwd)}`

function page({ url, routes }: Page, file: string, starter: Starter, processes: readonly string[]): string {
  return [
    `mcp-host ${version}, ${configLine(file, starter.cwd)}`,
    '',
    routeTable(routes),
    '',
    ...sourceLines(routes),
    ...tryLines(routes, selfCommand(starter)),
    ...processes,
    `listening on ${url}`,
  ].join('\n')
}
