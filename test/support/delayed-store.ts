// An event store that responds late and out of order, as a store across a network can. It keeps everything, so events that are
// missing after a test were lost by its user.
import type { EventStore, StoredEvent } from '../../core/sessions/event-store.ts'

/** Resolves after a varying delay. */
export type Delay = (what: string) => Promise<unknown>

/** When an operation takes effect: when it is called, or when it resolves. */
export type Effect = 'asked' | 'answered'

export function createUnevenStore(delay: Delay, effect: Effect = 'asked'): EventStore {
  const sessions = new Map<string, Map<string, StoredEvent[]>>()

  function eventsOf(session: string, stream: string): StoredEvent[] {
    const streams = sessions.get(session) ?? new Map<string, StoredEvent[]>()
    const events = streams.get(stream) ?? []
    sessions.set(session, streams.set(stream, events))
    return events
  }

  async function later<Value>(what: string, act: () => Value): Promise<Value> {
    if (effect === 'answered') await delay(what)
    const value = act()
    if (effect === 'asked') await delay(what)
    return value
  }

  return {
    append: (session, stream, message) =>
      later('append', () => {
        const events = eventsOf(session, stream)
        return events.push({ seq: events.length + 1, message })
      }),
    after: (session, stream, seq) =>
      later('after', () => {
        const events = sessions.get(session)?.get(stream)
        return !events || seq > events.length ? undefined : events.slice(seq)
      }),
    drop: (session, stream) =>
      later(
        'drop',
        () => void (stream === undefined ? sessions.delete(session) : sessions.get(session)?.delete(stream)),
      ),
  }
}

/** Resolves after none to three turns of the event loop, alternating, so that later calls can resolve first. */
export function unevenTurns(): Delay {
  let asked = 0
  return async () => {
    for (let turns = (asked++ * 7) % 4; turns > 0; turns--) await new Promise(resolve => setImmediate(resolve))
  }
}
