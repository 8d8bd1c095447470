// How many calls of one tool run at a time: more wait in a fair line, and past its bounds are refused.
// A call keeps its place until its handler is over, whatever became of the call: the handler is what takes the machine.
import type { Clock } from '../http/clock.ts'
import { HostError } from '../http/errors.ts'
import type { Linked, LinkedList } from '../http/linked-list.ts'
import type { Call } from './call.ts'
import { FairLine } from './fair-line.ts'
import { holderOf } from './holder.ts'
import { MAX_WAITING_CALLS, MAX_WAITING_CALLS_PER_OWNER } from './limits.ts'
import { ToolError } from './tool-error.ts'

/** A call's place, or its wait for one. */
export class Turn implements Linked {
  older?: this | undefined
  newer?: this | undefined
  linked?: boolean
  /** Resolves when the place is there; rejects where the call is cancelled before, or its time is over. */
  ready: Promise<void> | undefined
  /** Milliseconds that it waited. */
  waited = 0
  /** Takes the place that was left to it. */
  begin: (() => void) | undefined
  readonly owner: string
  readonly #leave: (owner: string) => void
  #held = false

  constructor(owner: string, leave: (owner: string) => void) {
    this.owner = owner
    this.#leave = leave
  }

  hold() {
    this.#held = true
  }

  /** Once; a call that never had a place leaves none. */
  leave() {
    if (!this.#held) return
    this.#held = false
    this.#leave(this.owner)
  }
}

export interface CallQueueFacts {
  readonly tool: string
  /** Calls that may run at a time. */
  readonly most: number
  /** Milliseconds for a whole call, its wait counted; undefined: no limit. */
  readonly timeout: number | undefined
  readonly clock: Clock
}

/** Seconds until a place may be free: nobody knows. */
const SOON = 1

const calls = (count: number) => `${count} call${count === 1 ? '' : 's'}`

export class CallQueue implements Linked {
  older?: this | undefined
  newer?: this | undefined
  linked?: boolean
  readonly facts: CallQueueFacts
  readonly #busy: LinkedList<CallQueue>
  readonly #refused: () => void
  readonly #line = new FairLine<Turn>()
  readonly #leave: (owner: string) => void
  #running = 0

  /** `busy` is the list of those that run something. `refused` is told of each call that is not taken. */
  constructor(facts: CallQueueFacts, busy: LinkedList<CallQueue>, refused: () => void) {
    this.facts = facts
    this.#busy = busy
    this.#refused = refused
    this.#leave = owner => this.#passOn(owner)
  }

  /** Handlers that run. */
  get running(): number {
    return this.#running
  }
  get waiting(): number {
    return this.#line.size
  }

  /** A place, or a place in the line. Throws `tooManyRequests` where the line, or its owner's part of it, is full. */
  enter(call: Call): Turn {
    const turn = new Turn(holderOf({ user: call.user, ip: call.offer.ip }), this.#leave)
    if (this.#running < this.facts.most) {
      if (this.#running === 0) this.#busy.add(this)
      this.#running++
      this.#hold(turn)
    } else turn.ready = this.#wait(turn, call)
    return turn
  }

  #hold(turn: Turn) {
    this.#line.take(turn.owner)
    turn.hold()
  }

  /** The place of a handler that is over goes to whose turn it is. */
  #passOn(owner: string) {
    this.#line.leave(owner)
    const next = this.#line.next()
    if (next?.begin) return next.begin()
    this.#running--
    if (this.#running === 0) this.#busy.delete(this)
  }

  #wait(turn: Turn, call: Call): Promise<void> {
    const { owner } = turn
    const own = this.#line.waitingOf(owner)
    if (own >= MAX_WAITING_CALLS_PER_OWNER) throw this.#full(`${calls(own)} of one user or address`)
    if (this.#line.size >= MAX_WAITING_CALLS) throw this.#full(calls(this.#line.size))
    const { most, timeout, clock } = this.facts
    const { signal } = call
    if (signal.aborted) return Promise.reject(cancelled())
    const since = clock.monotonic()
    this.#line.add(owner, turn)
    return new Promise((resolve, reject) => {
      const leaveLine = () => {
        clock.clear(timer)
        signal.removeEventListener('abort', gone)
        this.#line.delete(owner, turn)
      }
      const gone = () => {
        leaveLine()
        reject(cancelled())
      }
      const late = () => {
        leaveLine()
        const why = `it waited ${timeout} ms for its turn and did not run; at most ${calls(most)} of it run at once`
        reject(new HostError('callTimeout', { detail: why }))
      }
      const timer = timeout === undefined ? undefined : clock.setTimeout(late, timeout)
      signal.addEventListener('abort', gone, { once: true })
      turn.begin = () => {
        leaveLine()
        turn.waited = clock.monotonic() - since
        this.#hold(turn)
        resolve()
      }
    })
  }

  #full(waiting: string): HostError {
    this.#refused()
    const { tool, most } = this.facts
    const what = `at most ${calls(most)} of "${tool}" run at once, and ${waiting} wait`
    return new HostError('tooManyRequests', {
      detail: `${what}; try again in ${SOON} s`,
      headers: { 'Retry-After': String(SOON) },
      data: { reason: 'busy', limit: 'concurrency', retryAfter: SOON, retryable: true },
      reason: `concurrency of ${tool}: ${most}`,
    })
  }
}

const cancelled = () => new ToolError('The call was cancelled before it ran.')

/** The handler, which leaves the place once it is over. */
export function inPlace<Args extends readonly unknown[]>(
  turn: Turn,
  handle: (...args: Args) => unknown,
): (...args: Args) => unknown {
  const leave = () => turn.leave()
  return (...args) => {
    let value: unknown
    try {
      value = handle(...args)
    } catch (error) {
      leave()
      throw error
    }
    if (typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function') {
      value.then(leave, leave)
    } else leave()
    return value
  }
}
