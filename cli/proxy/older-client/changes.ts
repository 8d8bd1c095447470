// What an older client hears of by itself in a session: one `subscriptions/listen` of the server, for its lists and for the
// resources that the client watches (2026-07-28 basic/patterns/subscriptions).
import { isObject } from '../../../core/mcp/is-object.ts'
import { LIST_FILTERS, META } from '../../../core/mcp/protocol.ts'
import { createBackOff, sleep, type Timing } from '../link.ts'
import { Failure, type Fields, type Id } from '../messages.ts'
import { withoutOwnMeta } from './older-answer.ts'
import { type Opening, speakFor } from './opening.ts'
import { failureOf, type Port, type Sent } from './port.ts'

/** Resources that one client watches. */
const MAX_WATCHED = 1_000
/** Codes after which to ask once more is of no use. */
const FINAL: readonly unknown[] = [-32_601, -32_602]

export interface ChangeParts {
  readonly port: Port
  readonly timing: Timing
  readonly signal: AbortSignal
  tell(message: Fields): void
  note(what: string): void
}

/** The lists whose changes the server tells of. */
function listsOf({ capabilities }: Opening): Fields {
  const tells = ([, kind]: readonly [string, string]) => {
    const capability = capabilities[kind]
    return isObject(capability) && capability['listChanged'] === true
  }
  return Object.fromEntries(
    Object.entries(LIST_FILTERS)
      .filter(tells)
      .map(([filter]) => [filter, true]),
  )
}

const subscriptionOf = ({ params }: Fields): unknown => {
  const meta = isObject(params) ? params['_meta'] : undefined
  return isObject(meta) ? meta[META.subscriptionId] : undefined
}

export function createChanges(opening: Opening, { port, timing, signal, tell, note }: ChangeParts) {
  const lists = listsOf(opening)
  const watched = new Set<string>()
  const acknowledging = new Map<Id, (uris: readonly unknown[]) => void>()
  let current: Sent | undefined
  let honoured: readonly unknown[] = []
  let last: Promise<void> = Promise.resolve()
  let queued: Promise<void> | undefined

  /** Another stream in the place of the one that is: it comes first, so that nothing is missed between them. */
  async function open(): Promise<void> {
    const before = current
    const uris = [...watched]
    if (uris.length === 0 && Object.keys(lists).length === 0) {
      current = undefined
      return before?.cancel('nothing is listened for')
    }
    const notifications = { ...lists, ...(uris.length > 0 && { resourceSubscriptions: uris }) }
    const sent = port.request('subscriptions/listen', speakFor(opening, { notifications }))
    const acknowledged = new Promise<readonly unknown[]>(resolve => acknowledging.set(sent.id, resolve))
    const refused = sent.answer.then(({ error }) => {
      throw isObject(error) ? failureOf(error) : new Failure('not translated', 'the server ended the subscription')
    })
    try {
      honoured = await Promise.race([acknowledged, refused])
    } finally {
      acknowledging.delete(sent.id)
    }
    current = sent
    before?.cancel('another subscription took its place')
    refused.catch(error => {
      if (current !== sent) return
      current = undefined
      note(`the subscription ended: ${error}`)
      void keep(true)
    })
  }

  /** One at a time; who comes while one waits shares it. */
  function renew(): Promise<void> {
    queued ??= last
      .catch(() => undefined)
      .then(() => {
        queued = undefined
        return open()
      })
    last = queued
    return queued
  }

  /** Until there is one, or the server has none. */
  async function keep(again: boolean): Promise<void> {
    const backOff = createBackOff(timing)
    while (!signal.aborted) {
      if (again) await sleep(backOff.pause, signal).catch(() => undefined)
      again = true
      try {
        if (!signal.aborted && !current) await renew()
        return
      } catch (error) {
        note(`changes are not told: ${error}`)
        if (error instanceof Failure && FINAL.includes(error.code)) return
      }
    }
  }

  return {
    start: () => void keep(false),

    async subscribe(uri: string): Promise<void> {
      if (watched.has(uri) && honoured.includes(uri)) return
      if (watched.size >= MAX_WATCHED) throw new Failure('too many', `at most ${MAX_WATCHED} resources are watched`)
      watched.add(uri)
      try {
        await renew()
        if (honoured.includes(uri)) return
        const { resourceNotFoundCode: code } = opening.rules
        throw Object.assign(new Failure('refused', 'the server does not tell of this resource', { code }), {
          data: { uri },
        })
      } catch (error) {
        watched.delete(uri)
        throw error
      }
    },

    async unsubscribe(uri: string): Promise<void> {
      if (watched.delete(uri)) await renew()
    },

    /** True for what belongs to a subscription; the client is told of changes alone. */
    hear(message: Fields): boolean {
      const id = subscriptionOf(message)
      if (id === undefined) return false
      const { method } = message
      const params = withoutOwnMeta(isObject(message['params']) ? message['params'] : {})
      if (method !== 'notifications/subscriptions/acknowledged') {
        tell({ method, params })
        return true
      }
      const filters = isObject(params['notifications']) ? params['notifications'] : {}
      const uris = filters['resourceSubscriptions']
      acknowledging.get(id as Id)?.(Array.isArray(uris) ? uris : [])
      return true
    },

    end: () => current?.cancel('the client has ended'),
  }
}
