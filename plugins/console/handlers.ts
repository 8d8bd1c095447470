// The handlers of the API, by method and path.
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { HostError } from '../../core/index.ts'
import type { InternalHost, KeptWarning, Operator } from '../../core/internal.ts'
import { isObject } from '../../core/plugin.ts'
import { grantSources } from '../families/credentials/index.ts'
import { type OperatorAction, operatorActions } from '../families/operator-actions/index.ts'
import { ENDING_WARNINGS, upstreamStatesOf } from '../families/upstream-calls/index.ts'
import {
  commandFor,
  createHandles,
  inspectRoute,
  itemsOf,
  programOf,
  readAccess,
  readCaller,
  withDetails,
} from './access.ts'
import {
  type ActionResult,
  type AppPage,
  type AppRequest,
  type ConfigView,
  type Envelope,
  type Grants,
  type ItemKind,
  type LastReload,
  type Me,
  type NodeResult,
  PATHS,
  type Reply,
  type RouteRow,
  type SearchHit,
  type Surface,
  shellWord,
  type TryRequest,
  type Unavailable,
  type UpstreamRow,
  type Warning,
} from './api.ts'
import { createAppPages } from './app-pages.ts'
import { readAuditTail } from './audit-tail.ts'
import { createFeed } from './feed.ts'
import { ownVersion } from './files.ts'
import { readGrants } from './grants.ts'
import type { OperatorSession } from './login.ts'
import { maskConfig } from './mask.ts'
import {
  mergeCalls,
  mergeClients,
  mergeDenials,
  mergeItems,
  mergeOverviews,
  mergeSessions,
  mergeTasks,
  mergeUpstreams,
  type OverviewPart,
  type Parts,
  replyValues,
} from './merge.ts'
import { createNodes, findPeers, type NodeReply, type NodeTick } from './nodes.ts'
import { CAPACITY, type Records } from './records.ts'
import { ApiFailure, type ApiHandler, type ApiRequest } from './server.ts'
import { cancelTask, countSessions, endSession, readSessions, readTasks } from './sessions-and-tasks.ts'
import { toStats } from './stats.ts'
import { readApp, tryTool } from './try-tool.ts'

interface HandlerParts {
  readonly host: InternalHost
  readonly operator: Operator
  readonly records: Records
  readonly isActive: boolean
  /** Returns the nodes of this program: this node, or all workers. */
  readonly readProgram: () => Promise<readonly unknown[]>
}

const KINDS: ReadonlySet<unknown> = new Set(['tools', 'resources', 'prompts'] satisfies ItemKind[])
const isKind = (value: unknown): value is ItemKind => KINDS.has(value)

/** The only listed client of embedded hosts, which have no CLI. */
const CLAUDE_CODE = { id: 'claude-code', title: 'Claude Code' }

const MAX_HITS = 20
/** Tools in the overview of one node. The page shows the busiest of all nodes. */
const MAX_TOOLS = 50
const MAX_QUERY = 200
const MAX_REASON = 1_000
/** Maximum listed withheld items of one server. */
const MAX_WITHHELD = 100
/** Milliseconds for which the result of the readiness checks is cached: they can call other services. */
const READINESS_TTL = 5_000

const toProblem = ({ problem, restart }: LastReload): string =>
  problem ?? `These changes require a restart: ${restart.join(', ')}.`

const appliedText = ({ taken }: LastReload): string =>
  taken.length > 0 ? `Reloaded: ${taken.join(', ')}.` : 'Reloaded: no changes.'

const toFailure = (refusal: { readonly [Key in string]?: unknown }) =>
  new ApiFailure(Number(refusal['status']), String(refusal['error']), String(refusal['message']))

const badRequest = (message: string) => new ApiFailure(400, 'bad_request', message)

function readNumber(query: URLSearchParams, name: string, fallback: number, max: number): number {
  const text = query.get(name)
  if (text === null) return fallback
  const value = Number(text)
  if (!/^\d{1,6}$/.test(text) || value < 1) throw badRequest(`\`${name}\` must be a positive number.`)
  return Math.min(value, max)
}

/** Returns the reason or reasons of a log line as text. */
function readReason({ reason, reasons, unmatched }: KeptWarning['fields']): string | undefined {
  if (typeof reason === 'string') return reason
  if (isObject(reasons))
    return Object.entries(reasons)
      .map(entry => entry.join(': '))
      .join('\n')
  return Array.isArray(unmatched) ? unmatched.join(', ') : undefined
}

function toWarning({ message, fields, count, firstAt, lastAt }: KeptWarning): Warning[] {
  const { code, fix, path, file, line, upstream } = fields
  const reason = readReason(fields)
  if (typeof code !== 'string') return []
  return [
    {
      code,
      message,
      ...(typeof fix === 'string' && { fix }),
      ...(typeof path === 'string' && { at: path }),
      ...(typeof file === 'string' && { source: `${file}${typeof line === 'number' ? `:${line}` : ''}` }),
      ...(typeof upstream === 'string' && { upstream }),
      ...(reason !== undefined && { reason: reason.slice(0, MAX_REASON) }),
      count,
      firstAt,
      lastAt,
    },
  ]
}

export function createHandlers({ host, operator, records, isActive, readProgram }: HandlerParts) {
  const { node, http, directory } = host.config
  const version = ownVersion()
  const handleOf = createHandles(host)
  const storeParts = { host, operator, handleOf }
  const actions = operatorActions(host)
  const stateReaders = upstreamStatesOf(host)
  const upstreamStates = () => [...stateReaders].flatMap(read => read())
  const isOn = (name: string) => operator.plugins.some(plugin => plugin.name === name)
  // Console calls use the loopback address; the certificate lacks it.
  const canTry = isActive && !http.tls
  const appPages = createAppPages(host)
  const uptime = () => Math.floor(process.uptime())

  const nodes = createNodes({
    host,
    peers: findPeers(host),
    name: node,
    collect: records.collect,
    failureOf: toFailure,
    readTick,
    answer: async (what, params) => {
      const read = Object.hasOwn(readers, what) ? readers[what] : undefined
      if (!read) throw new ApiFailure(404, 'not_found', 'This node has another version of the console.')
      try {
        return await read(params)
      } catch (error) {
        if (!HostError.is(error) || error.kind !== 'unavailable') throw error
        throw new ApiFailure(503, 'unavailable', 'The store does not respond.')
      }
    },
  })
  const isSingleProcess = nodes.scope === 'process'

  const envelope = (): Envelope => ({ node, at: host.clock.now(), scope: 'process' })
  const reply = <Data extends object>(data: Data): Reply<Data> => ({ ...envelope(), available: true, ...data })
  const unavailable = (reason: string, fix?: string): Unavailable => ({
    ...envelope(),
    available: false,
    reason,
    ...(fix !== undefined && { fix }),
  })

  function nodeIn(value: unknown): string | undefined {
    if (value === undefined || value === null || value === '') return undefined
    if (typeof value === 'string' && nodes.has(value)) return value
    throw new ApiFailure(404, 'not_found', 'There is no such node.')
  }

  /** Data of all nodes, or of the node in the query. */
  async function gather<Data extends object>(
    what: string,
    { query }: Pick<ApiRequest, 'query'>,
    merge: (replies: readonly NodeReply[]) => Data | undefined,
    params: Readonly<Record<string, unknown>> = {},
  ): Promise<Reply<Data>> {
    const only = nodeIn(query.get('node'))
    const replies = await nodes.request(what, params, only).catch((error: unknown) => {
      if (error instanceof ApiFailure) return error
      throw error
    })
    const all = {
      ...(only === undefined ? { scope: nodes.scope } : { node: only }),
      ...(!isSingleProcess && { nodeStates: nodes.states() }),
    }
    if (replies instanceof ApiFailure) return { ...unavailable(replies.message), ...all }
    const data = replies.length === 0 ? undefined : merge(replies)
    return data ? { ...reply(data), ...all } : { ...unavailable('The node does not respond.'), ...all }
  }

  let readiness: { readonly at: number; readonly result: ReturnType<InternalHost['checkReadiness']> } | undefined
  function readReadiness() {
    const now = host.clock.now()
    if (!readiness || now - readiness.at >= READINESS_TTL) readiness = { at: now, result: host.checkReadiness() }
    return readiness.result
  }

  let reloadedAt = operator.program?.lastReload()?.at
  async function readTick(): Promise<NodeTick> {
    const last = operator.program?.lastReload()
    if (last && last.at !== reloadedAt) feed.send({ event: 'reload', node, reload: last })
    reloadedAt = last?.at
    const { ready } = await readReadiness()
    const { inFlight } = operator.traffic
    return { second: records.second(), now: records.now(), inFlight, sessions: countSessions(host), ready }
  }
  const feed = createFeed({ host, records, readTick, nodes })

  const meOf = ({ via, expiresAt }: OperatorSession): Me => {
    const { name, version: own, title } = host.config.server
    const server = { name, version: own, ...(title !== undefined && { title }) }
    const command = programOf(operator)
    return { via, node, version, server, command, actions: isActive, try: canTry, expiresAt }
  }

  /** Returns the last reload's failure, which the kept warnings do not contain. */
  function reloadWarning(): Warning[] {
    const last = operator.program?.lastReload()
    if (!last || last.ok) return []
    const { at, problem } = last
    const code = problem === undefined ? 'MH3102' : 'MH3101'
    const reason = toProblem(last).slice(0, MAX_REASON)
    return [
      {
        code,
        message: 'Reload failed. Still serving the previous version.',
        reason,
        count: 1,
        firstAt: at,
        lastAt: at,
      },
    ]
  }

  function warnings(): Warning[] {
    const current = new Map(upstreamStates().map(one => [one.name, one.warnings] as const))
    const isOver = ({ code, upstream = '' }: Warning) =>
      ENDING_WARNINGS.some(one => one === code && !current.get(upstream)?.includes(one))
    const help = (code: string) => `See \`${programOf(operator)} help ${code}\`.`
    return [...reloadWarning(), ...(operator.warnings?.list() ?? []).flatMap(toWarning)]
      .filter(warning => !isOver(warning))
      .map(warning => ({ ...warning, fix: warning.fix ?? help(warning.code) }))
  }

  async function overview(): Promise<OverviewPart> {
    const { ready, checks, reasons } = await readReadiness()
    const { rss, heapUsed } = process.memoryUsage()
    return {
      version,
      nodeVersion: process.versions.node,
      pid: process.pid,
      processes: host.config.processes,
      uptime: uptime(),
      ready,
      checks: Object.entries(checks).map(([name, ok]) => {
        const reason = reasons?.[name]
        return { name, ok, ...(reason !== undefined && { reason }) }
      }),
      warnings: warnings(),
      now: records.now(),
      history: records.history(),
      tools: records.items('tools', MAX_TOOLS),
      inFlight: operator.traffic.inFlight,
      sessions: countSessions(host),
      streams: operator.traffic.streams,
      memory: { rss, heapUsed },
      plugins: [...new Set(operator.plugins.map(({ name }) => name))],
    }
  }

  const upstreams = (): UpstreamRow[] =>
    upstreamStates().map(({ withheld, differences: _, warnings: _other, lastError, ...state }) => ({
      ...state,
      node,
      ...(lastError && { lastError: { ...lastError, reason: lastError.reason.slice(0, MAX_REASON) } }),
      withheld: withheld.slice(0, MAX_WITHHELD),
      withheldCount: withheld.length,
      routes: operator.routes.flatMap(({ path, toolsets }) => (toolsets.includes(state.name) ? path : [])),
    }))

  const withheldOn = (toolsets: readonly string[]) =>
    upstreams()
      .filter(({ name }) => toolsets.includes(name))
      .reduce((total, { withheldCount }) => total + withheldCount, 0)

  const routes = (): RouteRow[] =>
    operator.routes.map(route => ({
      path: route.path,
      samplePath: route.samplePath,
      url: route.url,
      toolsets: route.toolsets,
      transports: route.transports,
      revisions: route.revisions,
      stateless: route.stateless,
      listen: route.listen,
      open: route.open,
      callers: route.callers,
      authenticators: route.authenticators,
      issuers: route.logins.issuers,
      tools: route.tools,
      withheld: withheldOn(route.toolsets),
      overrides: operator.plugins.flatMap(({ name, general, routes: own }) =>
        !general && own.includes(route.path) ? name : [],
      ),
      commands: [{ label: 'Explain access', command: commandFor(operator, route.samplePath) }],
    }))

  async function surface(): Promise<Surface> {
    const { program } = operator
    const { items, lock } = program
      ? await program.readSurface(upstreamStates())
      : { items: itemsOf(operator), lock: { state: 'none' as const, changes: [] } }
    const diff = `${programOf(operator)} diff${upstreamStates().length > 0 ? ' --connect' : ''}`
    const commands = [{ label: 'Changes since the lock file', command: diff }]
    const withheld = upstreamStates().flatMap(state =>
      state.withheld.slice(0, MAX_WITHHELD).map(([item, reason]) => [`${state.name}: ${item}`, reason] as const),
    )
    const figures = mergeItems(await nodes.request('items'))
    return { items: withDetails(operator, items), withheld, lock, figures, commands }
  }

  async function explain({ body }: ApiRequest) {
    const { path, caller, kind, name } = body
    inspectRoute(operator, path)
    const identity = readCaller(caller ?? {})
    if (kind !== undefined && !isKind(kind)) throw badRequest('`kind` must be tools, resources or prompts.')
    if (name !== undefined && (typeof name !== 'string' || name.length > 1_024))
      throw badRequest('`name` must be a string.')
    const { program } = operator
    if (!program) return unavailable('The host is embedded in another program, without the command explain.')
    const item = { ...(isKind(kind) && { kind }), ...(typeof name === 'string' && { name }) }
    const lines = await program.explain({ path: path as string, caller: identity, ...item })
    const command = commandFor(operator, path as string, item.kind, item.name)
    return reply({ lines, command: { label: 'Same in the terminal', command } })
  }

  async function audit({ query }: ApiRequest) {
    const lines = readNumber(query, 'lines', 100, 500)
    const { plugins } = operator.config as { readonly plugins?: Readonly<Record<string, unknown>> }
    const options = plugins?.['audit']
    if (!isOn('audit') || !isObject(options)) {
      return unavailable('The plugin `audit` is off for the whole host.', 'audit: { file: "audit.jsonl" }')
    }
    const file = typeof options['file'] === 'string' ? options['file'] : 'audit.jsonl'
    try {
      return reply(await readAuditTail(resolve(directory, file), file, lines, programOf(operator)))
    } catch {
      return unavailable(`The file ${file} cannot be read.`)
    }
  }

  async function grants(): Promise<Reply<Grants>> {
    const sources = grantSources(host)
    if (sources.size === 0) {
      return unavailable('The plugin `auth-bridge` is off.', 'auth-bridge: { provider: { … }, allow: { … } }')
    }
    try {
      return reply(await readGrants(sources, operator))
    } catch {
      return unavailable('The store of `auth-bridge` does not respond.')
    }
  }

  async function configView(): Promise<ConfigView> {
    const { program } = operator
    const { file, keys = {} } = (await program?.readConfig()) ?? {}
    return {
      ...(file !== undefined && { file }),
      config: maskConfig(operator),
      keys,
      reload: program?.lastReload() ?? null,
      commands: [{ label: 'Check the config', command: `${programOf(operator)} check` }],
    }
  }

  function clients() {
    const { clients: rows, legacy, other } = records.clients()
    const hasSse = isOn('transport-sse')
    return { clients: rows, other, legacy: { ...legacy, ...(hasSse && { sseNeeded: legacy.sse > 0 }) } }
  }

  function readNode(): Parts['node']['nodes'][number] {
    const { callsPerSecond } = toStats([records.now()])
    const sessions = countSessions(host)
    const { pid } = process
    return { name: node, machine: hostname(), pid, self: false, uptime: uptime(), callsPerSecond, sessions, version }
  }

  const callsOf = (text: string) => {
    const has = (id: string | undefined) => id?.toLowerCase().includes(text)
    return records.find(({ requestId, traceId }) => has(requestId) === true || has(traceId) === true, MAX_HITS)
  }

  async function search({ query }: ApiRequest) {
    const text = (query.get('q') ?? '').slice(0, MAX_QUERY)
    const needle = text.trim().toLowerCase()
    if (needle === '') return { query: text, hits: [] }
    const has = (...texts: readonly (string | undefined)[]) => texts.some(one => one?.toLowerCase().includes(needle))
    const calls = replyValues('find', await nodes.request('find', { text: needle })).flatMap(part => part.calls)
    const found: SearchHit[] = [
      ...operator.routes.flatMap(({ path }) => (has(path) ? { kind: 'route' as const, title: path, path } : [])),
      ...itemsOf(operator).flatMap(({ kind, name, title, path }) =>
        has(name, title) ? { kind, title: name, text: path, path, name } : [],
      ),
      ...upstreams().flatMap(({ name, state }) =>
        has(name) ? { kind: 'upstream' as const, title: name, text: state, name } : [],
      ),
      ...warnings().flatMap(({ code, message }) =>
        has(code, message) ? { kind: 'warning' as const, title: code, text: message, name: code } : [],
      ),
      ...calls.map(({ seq, node: at, requestId, traceId, name }) => ({
        kind: 'call' as const,
        title: requestId ?? traceId ?? String(seq),
        ...(name !== undefined && { text: name }),
        seq,
        node: at,
      })),
    ]
    return { query: text, hits: found.slice(0, MAX_HITS) }
  }

  /** Checks path and token of a request, and returns the public endpoint. */
  function targetIn({ path, token }: ApiRequest['body']) {
    if (!canTry) throw new ApiFailure(403, 'forbidden', 'Calls require `actions: true`, and a host without `http.tls`.')
    const inspected = inspectRoute(operator, path)
    readCaller({ ...(token !== undefined && { token }) })
    if (typeof token === 'string' && !/^[\x21-\x7e]+$/.test(token)) throw badRequest('The token is invalid.')
    const publicHost = http.publicUrl === undefined ? undefined : new URL(http.publicUrl).host
    return { inspected, target: { url: operator.url, host: publicHost, version } }
  }

  async function openApp({ body, session }: ApiRequest): Promise<AppPage> {
    const { target } = targetIn(body)
    const { uri } = body
    if (typeof uri !== 'string' || !/^ui:\/\/\S{1,1024}$/.test(uri)) throw badRequest('`uri` must be a `ui://` URI.')
    const { html, csp } = await readApp(body as unknown as AppRequest, target)
    return appPages.keep(html, csp, session)
  }

  async function callTool({ body, res, session }: ApiRequest) {
    const { tool, arguments: given = {}, confirm, inputResponses, requestState } = body
    const { inspected, target } = targetIn(body)
    const { samplePath } = operator.routes.find(route => route.path === inspected.route.path) ?? {}
    const isText = (value: unknown) => value === undefined || typeof value === 'string'
    const isMap = (value: unknown) => value === undefined || isObject(value)
    if (typeof tool !== 'string' || !isObject(given) || !isText(requestState) || !isMap(inputResponses)) {
      throw badRequest('Set `path`, `tool` and `arguments`.')
    }
    const item = inspected.items.find(({ kind, key }) => kind === 'tools' && key === tool)
    if (!item) throw badRequest('This path has no such tool.')
    const { annotations } = item.wire
    const hints = isObject(annotations) ? annotations : {}
    // In MCP, a tool without hints is destructive.
    if (hints['readOnlyHint'] !== true && hints['destructiveHint'] !== false && confirm !== true) {
      throw badRequest('This tool can be destructive: the call needs `confirm: true`.')
    }
    const command = `${programOf(operator)} call ${new URL(samplePath ?? '/', operator.url)} ${shellWord(tool)}`
    // The end of the response cancels the call.
    res.once(
      'close',
      session.onEnd(() => res.destroy()),
    )
    await tryTool(body as unknown as TryRequest, target, command, res)
    return undefined
  }

  type Target = Pick<OperatorAction, 'target' | 'handle' | 'owner'>
  type RunAction = (
    params: Readonly<Record<string, unknown>>,
  ) => Promise<Omit<ActionResult, 'ok'> & { ok?: false } & Target>

  function recordAction(action: string, outcome: 'ok' | 'failed', { target, handle, owner }: Target, by: string) {
    const fields = {
      action,
      target,
      ...(handle !== undefined && { handle }),
      ...(owner !== undefined && { owner }),
      outcome,
    }
    for (const listen of actions) listen({ ...fields, operator: by })
    host.log.info({ code: 'MH3609', ...fields }, 'An operator used the console')
  }

  /** Runs an action on this node, and records it. */
  const withRecord =
    (name: string, run: RunAction): RunAction =>
    async params => {
      if (!isActive) {
        throw new ApiFailure(403, 'forbidden', `Actions are off on node ${node}: set \`actions: true\`.`)
      }
      const by = typeof params['operator'] === 'string' ? params['operator'].slice(0, 100) : ''
      try {
        const result = await run(params)
        recordAction(name, result.ok === false ? 'failed' : 'ok', result, by)
        return result
      } catch (error) {
        recordAction(name, 'failed', { target: '' }, by)
        throw error
      }
    }

  const handleIn = ({ handle }: Readonly<Record<string, unknown>>): string => {
    if (typeof handle !== 'string' || !/^[\w-]{22}$/.test(handle)) throw badRequest('`handle` is invalid.')
    return handle
  }
  const notFound = (what: string) => new ApiFailure(404, 'not_found', `There is no such ${what} on node ${node}.`)

  const ownActions: Readonly<Record<string, RunAction>> = {
    'end-session': withRecord('end-session', async params => {
      const handle = handleIn(params)
      const ended = await endSession(storeParts, handle)
      if (ended === undefined) throw notFound('session')
      return { ...ended, handle, message: 'The session ended.' }
    }),
    'cancel-task': withRecord('cancel-task', async params => {
      const tool = isOn('tasks') ? await cancelTask(storeParts, handleIn(params)) : undefined
      if (tool === undefined) throw notFound('task')
      return { target: tool, handle: handleIn(params), message: 'The task was cancelled.' }
    }),
    reload: withRecord('reload', async () => {
      const { program } = operator
      if (!program) throw new ApiFailure(503, 'unavailable', 'The host is embedded in another program.')
      const target = `config of node ${node}`
      const reload = await program.reload()
      if (!reload) return { target, message: 'New workers read the config. The log contains the result.' }
      if (reload.ok) return { target, message: appliedText(reload) }
      return { ok: false, target, message: `Reload failed. ${toProblem(reload)}` }
    }),
  }

  /** Runs an action on one node. That node also records the action. */
  async function runActionAt(at: string, name: string, handle: unknown, who: string): Promise<ActionResult> {
    if (at === node) {
      const result = await ownActions[name]?.({ handle, operator: who })
      return { ok: result?.ok !== false, message: result?.message ?? '' }
    }
    const by = `${who}, node ${node}`
    const found = await nodes.act(at, name, { handle, operator: by })
    const { value, refusal } = found ?? {}
    const isDone = isObject(value) && value['ok'] !== false
    const text = (key: string) => (isObject(value) && typeof value[key] === 'string' ? value[key] : undefined)
    const target = { target: text('target') ?? `node ${at}`, handle: text('handle'), owner: text('owner') }
    recordAction(name, isDone ? 'ok' : 'failed', target, by)
    if (isObject(value)) return { ok: isDone, message: text('message') ?? '' }
    if (!isObject(refusal)) {
      throw new ApiFailure(503, 'unavailable', `Node ${at} does not respond. The action may have been executed.`)
    }
    throw toFailure(refusal)
  }

  const confirmed =
    (run: (body: ApiRequest['body'], at: string | undefined, who: string) => Promise<ActionResult>): ApiHandler =>
    async ({ body, session }) => {
      if (!isActive) throw new ApiFailure(403, 'forbidden', 'Actions are off: set `actions: true`.')
      if (body['confirm'] !== true) throw badRequest('The action needs `confirm: true`.')
      return run(body, nodeIn(body['node']), session.user ?? session.via)
    }
  const action = (name: keyof typeof ownActions) =>
    confirmed(({ handle }, at = node, who) => runActionAt(at, name, handle, who))

  /** Returns one node of each program, because a reload replaces all workers of a program. Prefers nodes that respond. */
  async function nodePerProgram(): Promise<readonly string[]> {
    const replies = await nodes.request('program')
    const programs = new Map(replies.map(({ name, value }) => [name, (value as Parts['program']).nodes]))
    const chosen: string[] = []
    const covered = new Set<string>()
    for (const name of [...programs.keys(), ...nodes.states().map(state => state.name)]) {
      if (covered.has(name)) continue
      chosen.push(name)
      for (const one of [name, ...(programs.get(name) ?? [])]) covered.add(one)
    }
    return chosen
  }

  async function reloadAt(at: string, who: string): Promise<NodeResult> {
    try {
      return { node: at, ...(await runActionAt(at, 'reload', undefined, who)) }
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      return { node: at, ok: false, message: error.message }
    }
  }

  const reload = confirmed(async (_body, at, who) => {
    const names = at === undefined ? await nodePerProgram() : [at]
    const others = Promise.all(names.flatMap(name => (name === node ? [] : reloadAt(name, who))))
    // The reload replaces this worker, which then cannot respond.
    if (host.config.processes > 1) await others
    const own = names.includes(node) ? [await reloadAt(node, who)] : []
    const results = [...own, ...(await others)]
    const failed = results.filter(({ ok }) => !ok).length
    const summary =
      failed === 0 ? `Reloaded ${results.length} nodes.` : `The reload failed on ${failed} of ${results.length} nodes.`
    const [first, ...more] = results
    return { ok: failed === 0, message: first && more.length === 0 ? first.message : summary, nodes: results }
  })

  /** Data and actions for the consoles of all nodes, including this one. */
  const readers: Readonly<Record<string, (params: Readonly<Record<string, unknown>>) => object | Promise<object>>> = {
    overview,
    calls: ({ limit }) => ({
      calls: records.list(typeof limit === 'number' ? Math.min(limit, CAPACITY.records) : 500),
      dropped: records.dropped(),
    }),
    denials: () => records.denials(),
    sessions: async () => {
      // Rejects if a store does not respond: the sessions in memory can then be outdated.
      const stores = new Set(host.routes.map(route => host.services.slot('sessionStore', route)))
      await Promise.all([...stores].map(store => store.shared && store.timeLeft('console')))
      return readSessions(storeParts)
    },
    tasks: () => readTasks(storeParts),
    upstreams: () => ({ servers: upstreams() }),
    clients,
    items: () => ({ items: records.items() }),
    node: () => ({ nodes: [readNode()] }),
    program: async () => ({ nodes: await readProgram() }),
    find: ({ text }) => ({ calls: typeof text === 'string' ? callsOf(text.slice(0, MAX_QUERY)) : [] }),
    ...ownActions,
  }

  let configFile: string | undefined
  const handlers: Readonly<Record<string, ApiHandler>> = {
    [`GET ${PATHS.me}`]: ({ session }) => meOf(session),
    [`GET ${PATHS.overview}`]: request =>
      gather('overview', request, found =>
        mergeOverviews(found, isSingleProcess, !isSingleProcess && !request.query.get('node')),
      ),
    [`GET ${PATHS.routes}`]: async () =>
      reply({ routes: routes(), clients: (await operator.program?.readConnectClients()) ?? [CLAUDE_CODE] }),
    [`GET ${PATHS.surface}`]: async () => reply(await surface()),
    [`POST ${PATHS.access}`]: async ({ body }) => reply(await readAccess(operator, body['path'], body['callers'])),
    [`POST ${PATHS.explain}`]: explain,
    [`GET ${PATHS.calls}`]: request => {
      const limit = readNumber(request.query, 'limit', 500, CAPACITY.records)
      return gather('calls', request, found => mergeCalls(found, limit), { limit })
    },
    [`GET ${PATHS.denials}`]: request => gather('denials', request, found => mergeDenials(found, isSingleProcess)),
    [`GET ${PATHS.sessions}`]: request => gather('sessions', request, mergeSessions),
    [`GET ${PATHS.tasks}`]: request =>
      isOn('tasks')
        ? gather('tasks', request, found => mergeTasks(found, isSingleProcess))
        : unavailable('The plugin `tasks` is off.', 'tasks: {}'),
    [`GET ${PATHS.upstreams}`]: async request => {
      if (isOn('upstream')) configFile ??= (await operator.program?.readConfig())?.file
      const command = `${programOf(operator)} doctor --config ${shellWord(configFile ?? 'FILE')}`
      return isOn('upstream')
        ? gather('upstreams', request, found => ({
            ...mergeUpstreams(found),
            commands: [{ label: 'Connect and check all servers', command }],
          }))
        : unavailable('The plugin `upstream` is off.', 'upstream: { servers: { docs: { url: "https://…" } } }')
    },
    [`GET ${PATHS.clients}`]: request => gather('clients', request, found => mergeClients(found, isSingleProcess)),
    [`GET ${PATHS.grants}`]: grants,
    [`GET ${PATHS.audit}`]: audit,
    [`GET ${PATHS.config}`]: async () => reply(await configView()),
    [`GET ${PATHS.nodes}`]: request =>
      gather('node', request, found => ({
        nodes: replyValues('node', found).flatMap(part => part.nodes.map(row => ({ ...row, self: row.name === node }))),
      })),
    [`GET ${PATHS.search}`]: async request => reply(await search(request)),
    [`GET ${PATHS.events}`]({ req, res, session, query }) {
      if (req.method === 'HEAD') throw new ApiFailure(405, 'bad_request', 'The stream is served for GET only.')
      if (!feed.open(res, session, nodeIn(query.get('node'))))
        throw new ApiFailure(503, 'unavailable', 'There are too many viewers.')
      return undefined
    },
    [`POST ${PATHS.try}`]: callTool,
    [`POST ${PATHS.app}`]: openApp,
    [`POST ${PATHS.endSession}`]: action('end-session'),
    [`POST ${PATHS.cancelTask}`]: action('cancel-task'),
    [`POST ${PATHS.reload}`]: reload,
  }
  return {
    handlers,
    appPages,
    meOf,
    start: () => nodes.start(),
    end: () => {
      feed.end()
      return nodes.end()
    },
  }
}
