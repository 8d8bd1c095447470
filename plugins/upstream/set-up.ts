// Sets up the upstream servers: toolsets, connections, readiness, metrics and explanations.
import { isLoopback } from '../../core/auth.ts'
import type { InternalHost } from '../../core/internal.ts'
import { parseDuration, StartError } from '../../core/plugin.ts'
import { operatorText } from '../../remote/index.ts'
import { createHeld } from './held.ts'
import type { UpstreamOptions } from './options.ts'
import { Places } from './places.ts'
import { resolveServer, type ServerSettings } from './settings.ts'
import { createTargets } from './targets.ts'
import { Upstream } from './upstream.ts'

/** Whether only this machine can reach the host. */
function isLocalHost({ config: { purpose, http } }: Pick<InternalHost, 'config'>): boolean {
  if (purpose === 'stdio') return true
  return isLoopback(http.host) && http.publicUrl === undefined && http.allowedHosts.length === 0
}

function addMetrics({ metrics }: InternalHost, upstreams: readonly Upstream[]) {
  const sum = (read: (upstream: Upstream) => number) => () => upstreams.reduce((total, one) => total + read(one), 0)
  const labels = ['upstream']
  const each = (read: (upstream: Upstream) => number) => () =>
    upstreams.map(one => [read(one), { upstream: one.settings.name }] as const)
  metrics.gauge(
    { name: 'mcp_host_upstream_up', help: '1 if the upstream server is connected, else 0.', labels },
    each(({ state }) => (state === 'up' ? 1 : 0)),
  )
  metrics.gauge(
    { name: 'mcp_host_upstream_sessions', help: 'Sessions at upstream servers.', labels },
    each(({ sessions }) => sessions),
  )
  metrics.gauge(
    { name: 'mcp_host_upstream_held', help: 'Calls to upstream servers that wait for a response of the client.' },
    sum(({ held }) => held.size),
  )
  metrics.gauge(
    {
      name: 'mcp_host_upstream_held_expired',
      help: 'Calls to upstream servers that ended because the client did not respond in time, since startup.',
    },
    sum(({ held }) => held.expired),
  )
}

export function setUpUpstreams(host: InternalHost, options: UpstreamOptions): void {
  const { log, clock, metrics } = host
  const { held: heldOptions = {}, processes: processOptions = {} } = options
  const isLocal = isLocalHost(host)
  const processes = new Places(processOptions.max ?? 200, !isLocal)
  const limits = {
    max: heldOptions.max ?? 100,
    maxPerUser: heldOptions.maxPerUser ?? 5,
    for: parseDuration(heldOptions.for ?? '5m'),
  }
  const calls = metrics.counter({
    name: 'mcp_host_upstream_calls_total',
    help: 'Calls to upstream servers, by outcome.',
    labels: ['upstream', 'outcome'],
  })
  const restarts = metrics.counter({
    name: 'mcp_host_upstream_reconnections_total',
    help: 'Reconnection attempts to upstream servers.',
    labels: ['upstream'],
  })

  function create(settings: ServerSettings): Upstream {
    const { name } = settings
    const fix = `set another \`prefix\`, or exclude items with \`exclude\`, \`resources\` or \`prompts\``
    const toolset = host.toolset(name, undefined, { at: ['servers', name], fix })
    const count = {
      call: (outcome: string) => calls(1, { upstream: name, outcome }),
      restart: () => restarts(1, { upstream: name }),
    }
    const targets = createTargets(settings, host)
    const held = createHeld(limits, clock)
    return new Upstream({ host, settings, toolset, targets, held, processes, isLocal, count })
  }

  const upstreams = Object.keys(options.servers).map(name => create(resolveServer(name, options, host.config)))
  addMetrics(host, upstreams)
  for (const upstream of upstreams) {
    const { name, whenDown } = upstream.settings
    if (whenDown !== 'fail') continue
    host.readiness(`upstream ${name}`, () => ['up', 'needs login'].includes(upstream.state) || upstream.describe())
  }

  async function start(upstream: Upstream) {
    try {
      await upstream.start()
    } catch (cause) {
      if (cause instanceof StartError) throw cause
      if (upstream.settings.whenDown !== 'fail') return
      throw new StartError('MH2940', `cannot connect: ${operatorText(cause)}`, { at: upstream.settings.at, cause })
    }
  }
  host.onStart(async () => {
    if (host.config.purpose === 'test') return
    host.services.onWatch((uri, isWatched) => {
      for (const upstream of upstreams) if (!isWatched || upstream.has(uri)) upstream.watch(uri, isWatched)
    })
    const started = await Promise.allSettled(upstreams.map(start))
    for (const result of started) if (result.status === 'rejected') throw result.reason
  })
  host.preClose(() => {
    for (const { held } of upstreams) held.close()
  })
  host.onClose(async () => {
    const closed = await Promise.allSettled(upstreams.map(one => one.close()))
    for (const result of closed) {
      if (result.status === 'rejected') log.debug({ err: result.reason as Error }, 'an upstream server failed to close')
    }
  })
  host.explain((item, route) => {
    const named = upstreams.filter(({ settings: { name } }) => route.toolsets.includes(name))
    if (!item) return named.map(one => `server "${one.settings.name}": ${one.describe()}`)
    const from = named.find(({ settings: { name } }) => host.services.itemsIn(name).includes(item))
    return from ? [`from the server "${from.settings.name}"`] : []
  })
}
