// Requests without a handshake, for transports: `_meta` and `subscriptions/listen`.

import { canSubscribeNow, findSubscribable, type ItemKind } from '../../../core/auth.ts'
import { HostError, type Implementation, type LogLevel } from '../../../core/index.ts'
import { addCount, type InternalHost } from '../../../core/internal.ts'
import { type Call, type Honoured, isObject, type Revision } from '../../../core/plugin.ts'
import {
  type ClientInfo,
  checkUri,
  clientInfoProblem,
  createWatchCharges,
  isHandshakeRevision,
  LIST_FILTERS,
  LOG_LEVELS,
  limitOwnerOf,
  MAX_LISTENS_PER_CALLER,
  MAX_WATCHED,
  MAX_WATCHED_BYTES,
  MAX_WATCHED_BYTES_PER_OWNER,
  META,
  RETRY,
  type RequestId,
  type RouteExtensions,
  type Subscriber,
  shown,
  sizeProblem,
  type ValidMessage,
  WATCH_COST,
  watchedCost,
} from '../../../core/transport.ts'

/** `version` is not checked yet. */
export interface RequestMeta {
  readonly version: string
  readonly client: ClientInfo
  readonly logLevel: LogLevel | undefined
}

/** Reads `_meta`. Throws `invalidMeta`. */
export function readRequestMeta(meta: unknown): RequestMeta {
  const refuse = (detail: string) => new HostError('invalidMeta', { detail })
  if (!isObject(meta)) throw refuse('`params._meta` is missing')
  const version = meta[META.protocolVersion]
  const capabilities = meta[META.clientCapabilities]
  const info = meta[META.clientInfo]
  const logLevel = meta[META.logLevel]
  const tooLarge = sizeProblem(META.clientInfo, info) ?? sizeProblem(META.clientCapabilities, capabilities)
  if (tooLarge !== undefined) throw refuse(tooLarge)
  if (typeof version !== 'string') throw refuse(`\`_meta\` needs ${META.protocolVersion}`)
  if (!isObject(capabilities)) throw refuse(`\`_meta\` needs ${META.clientCapabilities}, an object`)
  if (info !== undefined && !isObject(info)) throw refuse(`${META.clientInfo} must be an object`)
  const problem = info === undefined ? undefined : clientInfoProblem(info)
  if (problem !== undefined) throw refuse(problem)
  if (logLevel !== undefined && !LOG_LEVELS.includes(logLevel as LogLevel)) {
    throw refuse(`${META.logLevel} must be one of ${LOG_LEVELS.join(', ')}`)
  }
  return {
    version,
    client: { info: info as Implementation | undefined, capabilities },
    logLevel: logLevel as LogLevel | undefined,
  }
}

/** True if `_meta` names a version without handshake, so that the message needs no session. */
export function namesOwnVersion(message: ValidMessage): boolean {
  const meta = message.kind === 'response' ? undefined : message.params['_meta']
  const named = isObject(meta) ? meta[META.protocolVersion] : undefined
  return named !== undefined && !isHandshakeRevision(named)
}

export const unsupported = (requested: string, supported: readonly Revision[]): HostError =>
  new HostError('unsupportedVersion', { detail: shown(requested), data: { supported, requested: shown(requested) } })

interface Filter {
  readonly lists: ReadonlySet<ItemKind>
  readonly uris: readonly string[]
  readonly honoured: readonly Honoured[]
  /** The part of the request that the view supports. */
  readonly acknowledged: Readonly<Record<string, unknown>>
}

const refuse = (detail: string) => new HostError('invalidParams', { detail })

async function readFilter(call: Call, { listenFilters }: RouteExtensions): Promise<Filter> {
  const { params, view } = call
  const { notifications } = params
  if (!isObject(notifications)) throw refuse('subscriptions/listen needs `notifications`, an object')
  const lists = new Set<ItemKind>()
  const acknowledged: Record<string, unknown> = {}
  for (const [name, kind] of Object.entries(LIST_FILTERS)) {
    const flag = notifications[name]
    if (flag !== undefined && typeof flag !== 'boolean') throw refuse(`\`notifications.${name}\` must be a boolean`)
    if (!flag || !view.capabilities[kind]) continue
    lists.add(kind)
    acknowledged[name] = true
  }
  const { resourceSubscriptions: wanted = [] } = notifications
  if (!Array.isArray(wanted) || wanted.some(uri => typeof uri !== 'string') || wanted.length > MAX_WATCHED) {
    throw refuse(`\`notifications.resourceSubscriptions\` must be at most ${MAX_WATCHED} URIs`)
  }
  const distinct = [...new Set(wanted as string[])]
  for (const uri of distinct) checkUri(uri)
  if (watchedCost(distinct) > MAX_WATCHED_BYTES) {
    const most = `${MAX_WATCHED_BYTES} bytes of URIs and ${WATCH_COST} for each`
    throw refuse(`\`notifications.resourceSubscriptions\` must have at most ${most}`)
  }
  const uris = [...new Set(distinct.flatMap(uri => findSubscribable(view, uri)?.uri ?? []))]
  if (uris.length > 0) acknowledged['resourceSubscriptions'] = uris
  const honoured: Honoured[] = []
  for (const [name, filter] of listenFilters) {
    const part = Object.hasOwn(notifications, name) ? await filter(notifications[name], call) : undefined
    if (!part) continue
    honoured.push(part)
    acknowledged[name] = part.acknowledged
  }
  return { lists, uris, acknowledged, honoured }
}

const tooMany = (detail: string) => new HostError('tooManyRequests', { detail, headers: { 'Retry-After': '60' } })

/** Limits the open streams of a caller and the bytes that they watch. Throws `tooManyRequests`. */
function createCounter() {
  const counts = new Map<string, number>()
  const charge = createWatchCharges()
  return (caller: string, cost: number): (() => void) => {
    if ((counts.get(caller) ?? 0) >= MAX_LISTENS_PER_CALLER)
      throw tooMany(`at most ${MAX_LISTENS_PER_CALLER} open subscriptions`)
    if (!charge(caller, cost, false)) {
      const most = `${MAX_WATCHED_BYTES_PER_OWNER} bytes of URIs and ${WATCH_COST} for each`
      throw tooMany(`all open subscriptions together watch at most ${most}`)
    }
    addCount(counts, caller, 1)
    return () => {
      charge(caller, -cost, true)
      addCount(counts, caller, -1)
    }
  }
}

const createNotifier =
  (call: Call, _meta: Record<string, unknown>): Parameters<Honoured['begin']>[0] =>
  (method, params) =>
    call.notify(method, { ...params, _meta: { ...(params['_meta'] as object | undefined), ..._meta } })

export function addListen(host: Pick<InternalHost, 'method' | 'preClose' | 'log' | 'clock' | 'services'>): void {
  const reserve = createCounter()
  const open = new Set<() => void>()
  let draining = false

  function endAll(parts: Array<() => void>) {
    for (const endPart of parts.splice(0)) {
      try {
        endPart()
      } catch (err) {
        host.log.error({ code: 'MH2810', err }, "an extension's part of a subscription failed to end")
      }
    }
  }

  async function listen(call: Call): Promise<object> {
    const { offer, signal } = call
    if (!call.modern || !offer.route.listen) throw new HostError('methodNotFound', { detail: call.method })
    const { changesOn, extensionsOn, watchCaller } = host.services
    const { lists, uris, acknowledged, honoured } = await readFilter(call, extensionsOn(offer.route))
    const id = call.id as RequestId
    const release = reserve(limitOwnerOf({ user: call.user, ip: offer.ip }), watchedCost(uris))
    const subscriber: Subscriber = {
      lists,
      covers: toolset => toolset === undefined || offer.toolsets().includes(toolset),
      view: () => offer.viewFor(call.user),
      deliver: announcement => {
        const { uri } = announcement
        if (uri === undefined || canSubscribeNow(offer, call.user, uri)) call.send(announcement.tagged(id))
      },
    }
    const _meta = { [META.subscriptionId]: id }
    try {
      call.notify('notifications/subscriptions/acknowledged', { _meta, notifications: acknowledged })
    } catch (error) {
      release()
      throw error
    }
    const subscription = changesOn(offer.route).subscribe(subscriber)
    for (const uri of uris) subscription.watch(uri)
    const parts: Array<() => void> = []
    return new Promise((resolve, reject) => {
      const { route, params } = offer
      const unwatch = watchCaller({ route, params, user: call.user }, end)
      function end() {
        if (!open.delete(end)) return
        unwatch()
        subscription.end()
        release()
        signal.removeEventListener('abort', end)
        resolve({ _meta })
        endAll(parts)
      }
      open.add(end)
      try {
        for (const part of honoured) parts.push(part.begin(createNotifier(call, _meta)))
      } catch (error) {
        reject(error)
        return end()
      }
      // Delays the end by the retry interval, because the client reconnects at once.
      if (draining) host.clock.setTimeout(end, RETRY)
      signal.addEventListener('abort', end, { once: true })
      if (signal.aborted) end()
    })
  }

  host.method('subscriptions/listen', listen)
  // Each stream ends with its own result (basic/patterns/subscriptions, "Graceful Closure").
  host.preClose(() => {
    draining = true
    for (const end of [...open]) end()
  })
}
