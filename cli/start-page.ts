// The first screen of `start` and `dev`: URLs, access, and commands that can be copied.

import { shortName } from '../core/config/problems.ts'
import type { Host } from '../core/host.ts'
import type { RouteSummary } from '../core/mcp/routes/route-summary.ts'
import { MODERN_REVISION } from '../core/transport.ts'
import { type CommandContext, type Starter, selfCommand } from './context.ts'
import { commandLines, formatColumns, tableLines } from './render.ts'
import { countText, shellWord } from './text.ts'
import { version } from './version.ts'

function describeRevisions({ revisions, stateless }: RouteSummary): string {
  const [newest, ...older] = revisions
  if (newest === undefined) return 'none (no transport plugin)'
  if (older.length === 0) return newest
  return `${older.at(-1)} to ${newest}${stateless ? ' (stateless)' : ''}`
}

/** Lists the tools of a route, and the toolsets whose tools are not known yet. */
function describeTools({ tools, sources }: RouteSummary): string {
  const count = countText(tools, 'tool')
  const unknown = sources.flatMap(({ toolset, isEmpty }) => (isEmpty ? toolset : []))
  if (unknown.length === 0) return count
  return tools === 0 ? `tools of ${unknown.join(', ')}` : `${count}, and those of ${unknown.join(', ')}`
}

export function routeTable(routes: readonly RouteSummary[], width?: number): string {
  const rows = routes.map(route => {
    return [route.path, describeTools(route), route.toolsets.join(', '), describeRevisions(route), route.callers]
  })
  return tableLines(['Route', 'Serves', 'Toolsets', 'Protocol versions', 'Access'], rows, width, '   ').join('\n')
}

/** The route for example commands: one without parameters, preferably `/mcp`. */
export function exampleRoute(routes: readonly RouteSummary[]): RouteSummary | undefined {
  const served = routes.filter(({ revisions }) => revisions.length > 0)
  const plain = served.filter(({ path }) => !path.includes(':'))
  return plain.find(({ path }) => path.endsWith('/mcp')) ?? plain[0] ?? served[0]
}

const callLine = ({ url, example }: RouteSummary, self: string): string =>
  example === undefined ? `${self} list ${shellWord(url)}` : `${self} call ${shellWord(url)} ${shellWord(example)}`

const reached = (route: RouteSummary): RouteSummary =>
  route.revisions.includes(MODERN_REVISION) ? route : { ...route, url: `${route.url.replace(/\/$/, '')}/sse` }

/** Describes a protected route. Without metadata, clients cannot discover how to log in. */
function guardedLines(route: RouteSummary, self: string): string[] {
  const known = reached(route)
  const address = shellWord(known.url)
  if (!route.hasLoginMetadata) return [`${self} doctor ${address}`]
  return [`${self} login ${address}`, callLine(known, self)]
}

function actionRows(routes: readonly RouteSummary[], self: string, width = Number.POSITIVE_INFINITY): Row[] {
  const open = exampleRoute(routes.filter(route => route.open))
  const guarded = exampleRoute(routes.filter(route => !route.open))
  const connected = open ?? guarded
  const lines = [...(open ? [callLine(reached(open), self)] : []), ...(guarded ? guardedLines(guarded, self) : [])]
  const connect = connected ? [`${self} connect claude-code ${shellWord(reached(connected).url)}`] : []
  const row =
    (name: string) =>
    (line: string, index: number): Row => [index === 0 ? name : '', commandLines(line, width - 'Connect'.length - 4)]
  return [...lines.map(row('Try')), ...connect.map(row('Connect'))]
}

type Row = readonly [name: string, text: string | readonly string[]]

/** The URL with its parameters, such as `http://127.0.0.1:3000/t/:category?`. */
const patternUrl = ({ url, samplePath, path }: RouteSummary): string =>
  path.includes(':') && url.endsWith(samplePath) ? `${url.slice(0, -samplePath.length)}${path}` : url

function addressRows(routes: readonly RouteSummary[]): Row[] {
  const tools = routes.map(describeTools)
  const width = Math.max(0, ...tools.map(({ length }) => length))
  return routes.map((route, index) => {
    const access = [route.callers, ...(route.stateless ? ['stateless'] : [])].join(', ')
    const text = route.revisions.length === 0 ? 'not served: no transport plugin' : access
    return [patternUrl(route), `${(tools[index] ?? '').padEnd(width)}   ${text}`]
  })
}

function loginRows(routes: readonly RouteSummary[]): Row[] {
  const logins = routes.filter(({ open }) => !open).map(route => route.logins)
  const isDevelopment = logins.some(login => login.isDevelopment)
  const issuers = [...new Set(logins.flatMap(login => login.issuers))].join(', ')
  const text = isDevelopment ? 'development only: anyone can sign in' : issuers
  return text === '' ? [] : [['authorization server', text]]
}

const sourceRows = (routes: readonly RouteSummary[]): Row[] => [
  ...new Map(
    routes.flatMap(({ sources }) => sources.map(({ toolset, state }) => [`toolset ${toolset}`, state] as const)),
  ),
]

interface PageOptions {
  /** Keys that the user can press. */
  readonly keys?: string | undefined
  readonly processes?: { readonly primary: number; readonly workers: readonly number[] }
  readonly console?: string | undefined
}

export const configLine = (file: string, cwd: string): string => `config ${shortName(file, cwd)}`

const processLines = ({ primary, workers }: NonNullable<PageOptions['processes']>): string[] => [
  '',
  `${countText(workers.length, 'worker')}: pid ${workers.join(', ')}`,
  `primary: pid ${primary}; SIGHUP reloads the config, SIGTERM stops`,
]

/** Without a terminal, the last line is `listening on` and the URL, for programs. */
export function startPage(
  { url, routes }: Pick<Host, 'url' | 'routes'>,
  file: string,
  context: Starter & Partial<Pick<CommandContext, 'stdout'>>,
  { keys, processes, console }: PageOptions = {},
): string {
  const { isTTY = false, columns: width } = context.stdout ?? {}
  const actions = [
    ...actionRows(routes, selfCommand(context), width),
    // On one line, because terminals recognize only such URLs.
    ...(console === undefined ? [] : [['Console', [console]] as const]),
    ...(keys === undefined ? [] : [['Keys', keys] as const]),
  ]
  return [
    `  mcp-host ${version}   ready in ${process.uptime().toFixed(1)} s   ${configLine(file, context.cwd)}`,
    '',
    formatColumns([...addressRows(routes), ...loginRows(routes), ...sourceRows(routes)], width),
    ...(actions.length > 0 ? ['', formatColumns(actions, width)] : []),
    ...(processes ? processLines(processes) : []),
    ...(isTTY ? [''] : ['', `listening on ${url}`]),
  ].join('\n')
}
