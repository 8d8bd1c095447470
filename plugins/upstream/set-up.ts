// Sets up the upstream servers: toolsets, connections, readiness, metrics and explanations.
import { existsSync } from 'node:fs'
import { delimiter, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { isLoopback } from '../../core/auth.ts'
import type { Definition } from '../../core/index.ts'
import type { CallQueue, InternalHost } from '../../core/internal.ts'
import { type McpRoute, parseDuration, type ServedToolset, StartError } from '../../core/plugin.ts'
import { LinkedList, withTimeout } from '../../core/transport.ts'
import { type CommandTarget, operatorText } from '../../remote/index.ts'
import { createLogins } from '../families/credentials/index.ts'
import { upstreamCallsOf, upstreamStatesOf } from '../families/upstream-calls/index.ts'
import { createHeldCalls, type HeldCalls } from './held.ts'
import { type LockEntry, readLockEntries } from './lock-entry.ts'
import { createNodeRelay } from './node-relay.ts'
import type { UpstreamOptions } from './options.ts'
import { SessionLimit } from './session-limit.ts'
import { resolveServer, type ServerSettings } from './settings.ts'
import { createTargets } from './targets.ts'
import { Upstream } from './upstream.ts'

/** Maximum time that startup waits for a server, milliseconds. Accepted tools are served from the start. */
const START_TIMEOUT = { accepted: 3_000, unknown: 15_000 }

/** True if only this machine can reach the host. */
function isLocalHost({ config: { purpose, http } }: Pick<InternalHost, 'config'>): boolean {
  if (purpose === 'stdio') return true
  const isPublic = http.publicUrl !== undefined || http.allowedHosts.length > 0 || http.trustProxy !== false
  return isLoopback(http.host) && !isPublic
}

const SCRIPT = /^[^-].*\.(?:[cm]?[jt]s|py|rb|php|sh)$/i
const INTERPRETER = /(?:^|[\\/])(?:node|bun|tsx|python[\d.]*|ruby|php|bash|sh)(?:\.exe)?$/i

/** Returns the option of a stdio server whose file or folder does not exist. */
function findMissingFile({ command, args: [first = ''] = [], cwd = '.', env }: CommandTarget) {
  if (!existsSync(cwd)) return { key: 'cwd', what: `the folder ${cwd} does not exist` }
  const isPath = /[\\/]/.test(command)
  const folders = isPath ? [''] : (env?.['PATH'] ?? process.env['PATH'] ?? '').split(delimiter)
  const hasSpaces = /\s/.test(command)
  // On Windows, extensions are optional.
  const isFound =
    (process.platform === 'win32' && !hasSpaces) || folders.some(folder => existsSync(resolve(cwd, folder, command)))
  if (!isFound) {
    const where = isPath ? resolve(cwd, command) : `${command} in PATH`
    const fix = hasSpaces
      ? 'commands are not split at spaces: write a list, such as [node, server.js]'
      : 'install it, or correct the command'
    return { key: 'command', what: `cannot find the program ${where}; ${fix}` }
  }
  const script = resolve(cwd, first)
  return INTERPRETER.test(command) && SCRIPT.test(first) && !existsSync(script)
    ? { key: 'args', what: `the file ${script} does not exist` }
    : undefined
}

function addMetrics({ metrics }: InternalHost, all: () => readonly Upstream[]) {
  const labels = ['upstream']
  const each = (read: (upstream: Upstream) => number) => () =>
    all().map(one => [read(one), { upstream: one.settings.name }] as const)
  metrics.gauge(
    { name: 'mcp_host_upstream_up', help: '1 if calls can reach the upstream server, else 0.', labels },
    each(({ isUp }) => (isUp ? 1 : 0)),
  )
  metrics.gauge(
    { name: 'mcp_host_upstream_sessions', help: 'Sessions at upstream servers.', labels },
    each(({ calls }) => calls.sessions.size),
  )
  metrics.gauge(
    {
      name: 'mcp_host_upstream_withheld',
      help: 'Tools and prompts that are withheld until they are accepted.',
      labels,
    },
    each(({ lists }) => lists.withheld.size),
  )
  metrics.gauge(
    { name: 'mcp_host_upstream_held', help: 'Calls to upstream servers that wait for a response of the client.' },
    () => all().reduce((total, { held }) => total + held.size, 0),
  )
}

/** Toolsets by options, for `examine`, which compares names on the routes of the config. */
export const toolsetsFor = new WeakMap<UpstreamOptions, ReadonlyMap<string, ServedToolset>>()

export function setUpUpstreams(host: InternalHost, options: UpstreamOptions): void {
  const { log, clock, metrics } = host
  const { lock, purpose } = host.config
  const { held: heldOptions = {}, processes: processOptions = {} } = options
  const isLocal = isLocalHost(host)
  const processes = new SessionLimit(processOptions.max ?? 200, !isLocal)
  const limits = {
    max: heldOptions.max ?? 100,
    maxPerUser: heldOptions.maxPerUser ?? 5,
    for: parseDuration(heldOptions.for ?? '5m'),
  }
  const record = upstreamCallsOf(host)
  const busy = new LinkedList<CallQueue>()
  metrics.gauge(
    {
      name: 'mcp_host_upstream_active_calls',
      help: 'Running and queued calls to upstream servers.',
      labels: ['upstream', 'state'],
    },
    () =>
      [...busy].flatMap(({ facts: { tool: upstream }, running, waiting }) => [
        [running, { upstream, state: 'running' }] as const,
        [waiting, { upstream, state: 'waiting' }] as const,
      ]),
  )
  const reconnections = metrics.counter({
    name: 'mcp_host_upstream_reconnections_total',
    help: 'Reconnection attempts to upstream servers.',
    labels: ['upstream'],
  })

  function create(settings: ServerSettings, accepted: LockEntry | undefined): Upstream {
    const { name } = settings
    const countReconnection = () => reconnections(1, { upstream: name })
    const targets = createTargets(settings, tokenHost)
    const held = heldOf.get(name) ?? createHeldCalls(limits, clock)
    heldOf.set(name, held)
    const toolset = { replace: (definitions: readonly Definition[]) => toolsets.get(name)?.replace(definitions) }
    const own = { settings, toolset, targets, held, accepted, countReconnection }
    return new Upstream({ host, processes, isLocal, record, nodeRelay, busy, ...own })
  }

  const loginsOf = ({ servers }: UpstreamOptions) =>
    Object.keys(servers).filter(name => servers[name]?.auth?.kind === 'login')
  const logins = createLogins(host)
  for (const name of loginsOf(options)) logins.add(name)
  const tokenHost = {
    clock,
    logins,
    get services() {
      return host.services
    },
  }
  const toolsets = new Map<string, ServedToolset>()
  toolsetsFor.set(options, toolsets)
  const live = new Map<string, Upstream>()
  const retired = new Set<Upstream>()
  const heldOf = new Map<string, HeldCalls>()
  const nodeRelay = createNodeRelay(host, server => live.get(server)?.calls)
  const accepted = readLockEntries(lock.file)
  host.reads(lock.file)
  const missing = Object.keys(options.servers).filter(name => !accepted.has(name))
  if (lock.isFrozen && missing.length > 0) {
    const named = missing.map(name => `"${name}"`).join(', ')
    const what = `the lock file does not contain the tools of ${named}: run \`mcp-host accept ${missing.join(' ')}\``
    throw new StartError('MH2948', what, { at: [...host.config.at, 'servers'] })
  }
  for (const name of Object.keys(options.servers)) {
    const settings = resolveServer(name, options, host.config)
    const { at, command } = settings
    for (const [index, variable] of (command?.passEnv ?? []).entries()) {
      if (process.env[variable] !== undefined) continue
      const what = `the environment variable ${variable} is not set, so the server "${name}" does not receive it`
      host.report(new StartError('MH2953', what, { at: [...at, 'passEnv', index] }), 'warning')
    }
    const problem = command && findMissingFile(command)
    if (problem) {
      const option = problem.key === 'args' && Array.isArray(options.servers[name]?.command) ? 'command' : problem.key
      host.report(new StartError('MH2943', problem.what, { at: [...at, option] }), 'warning')
    }
    const upstream = create(settings, accepted.get(name))
    live.set(name, upstream)
    const fix =
      'set another `prefix`, set `uris: wrap` for resources, or exclude items with `exclude`, `resources` or `prompts`'
    const describe = () => (purpose === 'inspect' ? live.get(name)?.explain() : live.get(name)?.describe()) ?? ''
    const instructions = () => live.get(name)?.lists.instructions
    const place = { at: ['servers', name], fix, isLate: true, describe, instructions }
    toolsets.set(name, host.toolset(name, upstream.lists.acceptedDefinitions(), place))
  }
  const all = () => [...live.values()]
  addMetrics(host, all)
  upstreamStatesOf(host).add(() => all().map(({ report }) => report))
  const servedOn = ({ toolsets }: McpRoute) => all().filter(({ settings: { name } }) => toolsets.includes(name))
  host.unlist(
    (tool, route) =>
      servedOn(route)
        .map(({ lists }) => lists.withheldReason(tool))
        .find(reason => reason !== undefined) ?? false,
  )
  /** Reloads can change `whenDown`. */
  function addReadiness({ name, whenDown }: ServerSettings) {
    if (whenDown !== 'fail') return
    host.readiness(`upstream ${name}`, () => {
      const upstream = live.get(name)
      if (upstream?.settings.whenDown !== 'fail') return true
      return ['up', 'needs login'].includes(upstream.state) || upstream.describe()
    })
  }
  for (const { settings } of all()) addReadiness(settings)

  async function start(upstream: Upstream) {
    try {
      await upstream.start()
    } catch (cause) {
      if (cause instanceof StartError) throw cause
      if (upstream.settings.whenDown !== 'fail') return
      throw new StartError('MH2940', `cannot connect: ${operatorText(cause)}`, { at: upstream.settings.at, cause })
    }
  }
  /** A server that takes longer is connected in the background. */
  function startInTime(upstream: Upstream) {
    const { name, whenDown } = upstream.settings
    const limit = START_TIMEOUT[accepted.has(name) ? 'accepted' : 'unknown']
    const started = start(upstream)
    return whenDown === 'fail' ? started : withTimeout(started, limit, () => undefined, clock)
  }
  host.onStart(async () => {
    if (purpose === 'test') return
    host.services.onWatch((uri, isWatched) => {
      for (const upstream of all()) if (!isWatched || upstream.lists.hasResource(uri)) upstream.watch(uri, isWatched)
    })
    const started = await Promise.allSettled(all().map(startInTime))
    const errors = started.flatMap(result => (result.status === 'rejected' ? [result.reason as Error] : []))
    const [first] = errors
    const texts = errors.map(({ message }) => message)
    if (texts.length > 1) throw new StartError('MH2940', texts.join('\n'), { cause: first, exitCode: 2 })
    if (first) throw first
  })
  host.preClose(() => {
    for (const held of heldOf.values()) held.close()
  })
  host.onClose(async () => {
    const closed = await Promise.allSettled([...all(), ...retired].map(one => one.close()))
    for (const result of closed) {
      if (result.status === 'rejected') log.debug({ err: result.reason as Error }, 'an upstream server failed to close')
    }
  })

  async function replace(settings: ServerSettings, entry: LockEntry | undefined, needsRestart: boolean) {
    const before = live.get(settings.name)
    const next = create(settings, entry)
    live.set(settings.name, next)
    addReadiness(settings)
    if (before) {
      retired.add(before)
      next.takeOver(before, needsRestart, () => {
        retired.delete(before)
        // The old process may have held a port or a lock that the new one needs.
        next.retry()
      })
    }
    for (const uri of before?.watched ?? []) next.watch(uri, true)
    if (purpose !== 'test') await next.start().catch(() => undefined)
  }
  host.onReload<UpstreamOptions>(changed => {
    const { servers, ...rest } = changed
    const names = Object.keys(servers)
    const isSameSet = names.length === live.size && names.every(name => live.has(name))
    const shared = ({ processes, held }: Partial<UpstreamOptions>) => ({ processes, held })
    const isSameLogins = isDeepStrictEqual(loginsOf(changed), loginsOf(options))
    if (!isSameSet || !isSameLogins || !isDeepStrictEqual(shared(rest), shared(options))) return undefined
    const entries = readLockEntries(lock.file)
    const resolved = names.map(name => resolveServer(name, changed, host.config))
    return () =>
      resolved.flatMap(settings => {
        const { name } = settings
        const upstream = live.get(name)
        const entry = entries.get(name)
        const needsRestart = upstream?.lists.needsRestart(entry) ?? false
        if (!upstream || needsRestart || !isDeepStrictEqual(settings, upstream.settings)) {
          void replace(settings, entry, needsRestart)
          return needsRestart ? [`restarting the stdio server "${name}": its lists differ from the lock file`] : []
        }
        const changes = upstream.setLockEntry(entry)
        return upstream.retry() ? [...changes, `connecting to the server "${name}"`] : changes
      })
  })
  host.explain((item, route) => {
    const named = servedOn(route)
    if (!item) {
      return named.flatMap(one => [
        `server "${one.settings.name}": ${one.explain()}`,
        ...[...one.lists.withheld].map(
          ([what, reason]) => `server "${one.settings.name}": ${what} is withheld: ${reason}`,
        ),
      ])
    }
    const from = named.find(({ settings: { name } }) => host.services.itemsIn(name).includes(item))
    return from ? [`from the server "${from.settings.name}"`] : []
  })
}
