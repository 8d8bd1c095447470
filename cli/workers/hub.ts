// Where the processes of one host reach each other: numbers what all are told, keeps the last of it for who comes late, and
// passes messages to single ones. Knows nothing of what they say. In the primary; neighbours.ts is the other end.

import type { Logger } from '../../core/create-host.ts'
import type { CountTogether } from '../../core/kernel/kernel-host.ts'
import { createMemoryCount, MOST_CALLERS } from '../../plugins/rate-limit/memory-counts.ts'

/** What one of them says. Each `question` has one answer. */
export type ToHub =
  | { readonly to: 'hear' }
  | { readonly to: 'tell'; readonly texts: readonly string[]; readonly question: number }
  | { readonly to: 'since'; readonly number: number; readonly question: number }
  | { readonly to: 'join'; readonly node: string }
  | { readonly to: 'count'; readonly counts: readonly ToCount[]; readonly question: number }
  | { readonly to: 'leave' | 'has'; readonly node: string; readonly question: number }
  /** `share`: as `Neighbours.send`. */
  | {
      readonly to: 'send'
      readonly node: string
      readonly text: string
      readonly share: string
      readonly question: number
    }

/** What one of them is told. */
export type FromHub =
  /** What comes next has the number after this one. */
  | { readonly from: 'place'; readonly number: number }
  | { readonly from: 'told'; readonly first: number; readonly texts: readonly string[] }
  /** What came before this number, and it, may not have been told. */
  | { readonly from: 'missed'; readonly number: number }
  | { readonly from: 'received'; readonly node: string; readonly text: string }
  | { readonly from: 'answer'; readonly question: number; readonly value: unknown }

export interface HubBounds {
  /** How many of the things that all were told are kept for who comes late. Default 10,000. */
  readonly kept: number
  /** Characters of them. Default 16 million. */
  readonly keptSize: number
  /** Characters that may be on their way to one of them, and of which each share may have as much as it leaves free. Default 32 million. */
  readonly underWay: number
}

const BOUNDS: HubBounds = { kept: 10_000, keptSize: 16_000_000, underWay: 32_000_000 }

/** One of the processes, as the hub has it. */
export interface Member {
  take(message: ToHub): void
  /** It has ended. */
  gone(): void
}

/** Calls back once the message has left this process. */
type Send = (message: FromHub, sent: () => void) => void

export interface Hub {
  connect(send: Send): Member
}

const sizeOf = (texts: readonly string[]) => texts.reduce((sum, { length }) => sum + length, 0)

/** The things that all were told, the last of them. */
function createRecent({ kept, keptSize }: HubBounds, begin: number) {
  let texts: string[] = []
  let size = 0
  let last = begin
  return {
    get last() {
      return last
    },
    add(more: readonly string[]) {
      texts.push(...more)
      size += sizeOf(more)
      last += more.length
      let gone = 0
      while (texts.length - gone > kept || size > keptSize) size -= texts[gone++]?.length ?? 0
      if (gone > 0) texts = texts.slice(gone)
    },
    since(number: number): readonly string[] | undefined {
      const count = last - number
      if (!(count >= 0 && count <= texts.length)) return undefined
      return texts.slice(texts.length - count)
    },
  }
}

/** The way to one of them: bounded, for whoever takes nothing must not fill the primary. */
class Outlet {
  readonly #send: Send
  readonly #last: () => number
  /** Characters on their way. */
  readonly #underWay: Room
  #missed = false

  constructor(send: Send, most: number, last: () => number) {
    this.#send = send
    this.#underWay = new Room(most)
    this.#last = last
  }

  fits(share: string, size: number) {
    return !this.#underWay.isFull && this.#underWay.fits(share, size)
  }

  send(message: FromHub, size = 0, share = '') {
    this.#underWay.take(share, size)
    this.#send(message, () => {
      this.#underWay.give(share, size)
      if (this.#missed && this.#underWay.taken === 0) {
        this.#missed = false
        this.send({ from: 'missed', number: this.#last() })
      }
    })
  }

  tell(first: number, texts: readonly string[], size: number) {
    if (this.#missed || this.#underWay.isFull) this.#missed = true
    else this.send({ from: 'told', first, texts }, size)
  }
}

/** `begin`: the number before the first; never one that an earlier hub may have given. `count`: counts for all of them. */
export function createHub(
  begin = Date.now() * 1_000,
  bounds: Partial<HubBounds> = {},
  count: (...one: ToCount) => Counted = createCounts(),
): Hub {
  const all = { ...BOUNDS, ...bounds }
  const recent = createRecent(all, begin)
  const hearing = new Set<Outlet>()
  const joined = new Map<string, Outlet>()

  function tell(texts: readonly string[]): true {
    const first = recent.last + 1
    const size = sizeOf(texts)
    recent.add(texts)
    for (const outlet of hearing) outlet.tell(first, texts, size)
    return true
  }

  function pass({ node, text, share }: Extract<ToHub, { to: 'send' }>): Sent {
    const outlet = joined.get(node)
    if (!outlet) return false
    if (!outlet.fits(share, text.length)) return FULL
    outlet.send({ from: 'received', node, text }, text.length, share)
    return true
  }

  function leave(node: string, outlet: Outlet): boolean {
    return joined.get(node) === outlet && joined.delete(node)
  }

  function answer(message: Extract<ToHub, { question: number }>, outlet: Outlet): unknown {
    if (message.to === 'tell') return tell(message.texts)
    if (message.to === 'since') return recent.since(message.number)
    if (message.to === 'send') return pass(message)
    if (message.to === 'count') return message.counts.map(one => count(...one))
    return message.to === 'has' ? joined.has(message.node) : leave(message.node, outlet)
  }

  return {
    connect(send) {
      const outlet = new Outlet(send, all.underWay, () => recent.last)
      return {
        take(message) {
          if (message.to === 'hear') {
            hearing.add(outlet)
            outlet.send({ from: 'place', number: recent.last })
          } else if (message.to === 'join') {
            joined.set(message.node, outlet)
          } else {
            const { question } = message
            outlet.send({ from: 'answer', question, value: answer(message, outlet) })
          }
        },
        gone() {
          hearing.delete(outlet)
          for (const node of [...joined.keys()]) leave(node, outlet)
        },
      }
    },
  }
}

/** In the place of true or false: whom it is for has not taken what it was sent before, or so much of that share. */
export const FULL = 'full'

/** Whether a message is on its way; false where nobody is there by that name. */
export type Sent = boolean | typeof FULL

export class Room {
  readonly #most: number
  readonly #of = new Map<string, number>()
  #taken = 0

  constructor(most: number) {
    this.#most = most
  }

  get taken(): number {
    return this.#taken
  }

  get isFull(): boolean {
    return this.#taken > this.#most
  }

  /** Whether there is room for more of one's: with one of them that is half of all, with two a third each, and so on. */
  fits(whose: string, size: number): boolean {
    return this.#taken === 0 || (this.#of.get(whose) ?? 0) + size <= this.#most - this.#taken
  }

  /** Also where it does not fit. */
  take(whose: string, size: number): void {
    this.#taken += size
    this.#of.set(whose, (this.#of.get(whose) ?? 0) + size)
  }

  give(whose: string, size: number): void {
    this.#taken -= size
    const left = (this.#of.get(whose) ?? 0) - size
    if (left > 0) this.#of.set(whose, left)
    else this.#of.delete(whose)
  }
}

export type ToCount = Parameters<CountTogether>
export type Counted = Awaited<ReturnType<CountTogether>>

export function createCounts(log?: Logger): (...one: ToCount) => Counted {
  const counters = new Map<string, { readonly count: ReturnType<typeof createMemoryCount>['count']; until: number }>()

  function create(name: string, window: number, now: number) {
    // A reload can change limits: counters whose windows are all over are not needed any more.
    for (const [old, { until }] of counters) if (until <= now) counters.delete(old)
    const means = 'new callers share counters and can be refused because of others; no caller exceeds the limit'
    const full = () =>
      log?.warn({ limit: name, callers: MOST_CALLERS, means }, 'a rate limit counts as many callers as it can')
    const counter = { count: createMemoryCount({ window, full }).count, until: 0 }
    counters.set(name, counter)
    return counter
  }

  return (name, window, key) => {
    const now = performance.now()
    const counter = counters.get(name) ?? create(name, window, now)
    counter.until = now + window
    const { used, until } = counter.count(key)
    return { used, left: Math.max(0, until - performance.now()) }
  }
}
