// Limits the concurrent calls of one tool. Further calls wait in a queue that is fair between callers; a full queue refuses calls.
// A call keeps its slot until its handler ends, even if the call was cancelled or timed out, because the handler uses the resources.
// While the handler waits for its client, another call can use the slot.
import type { Clock } from '../http/clock.ts'
import { HostError } from '../http/errors.ts'
import { type Linked, LinkedList } from '../http/linked-list.ts'
import type { Call } from './call.ts'
import { FairLine } from './fair-line.ts'
import { holderOf } from './holder.ts'
import { MAX_WAITING_CALLS, MAX_WAITING_CALLS_PER_OWNER } from './limits.ts'
import { ToolError } from './tool-error.ts'

/** The slot of a call, or its position in the queue. */
export class Turn implements Linked {
  older?: this | undefined
  newer?: this | undefined
  linked?: boolean
  /** Resolves when the call has a slot; rejects if the call is cancelled or times out before. */
  ready: Promise<void> | undefined
  /** Milliseconds in the queue. */
  waited = 0
  /** Takes a free slot and resolves `ready`. */
  begin: (() => void) | undefined
  readonly owner: string
  readonly #queue: CallQueue
  #held = false
  #over = false
  #retaking: Promise<void> | undefined

  constructor(owner: string, queue: CallQueue) {
    this.owner = owner
    this.#queue = queue
  }

  hold() {
    this.#held = true
    this.#retaking = undefined
    if (this.#over) this.release()
  }

  /** The handler has ended. Frees the slot, if the call has one. */
  leave() {
    this.#over = true
    this.release()
  }

  /** Frees the slot until `retake`. */
  release() {
    if (!this.#held) return
    this.#held = false
    this.#queue.passOn(this.owner)
  }

  /** Resolves when the handler has a slot again; undefined: it has one. A cancelled handler also needs one. */
  retake(): Promise<void> | undefined {
    if (this.#held || this.#over) return undefined
    this.#retaking ??= this.#queue.retake(this)
    return this.#retaking
  }
}

export interface CallQueueFacts {
  readonly tool: string
  /** Maximum concurrent calls. */
  readonly most: number
  /** Milliseconds for a whole call, queue time included; undefined: no limit. */
  readonly timeout: number | undefined
  readonly clock: Clock
}

/** `Retry-After`, seconds: a guess, because handlers have no known duration. */
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
  /** Handlers that had a slot and need one again. They have priority over the queue. */
  readonly #returning = new LinkedList<Turn>()
  #running = 0

  /** `busy`: the list of queues with running handlers. `refused` is called for each refused call. */
  constructor(facts: CallQueueFacts, busy: LinkedList<CallQueue>, refused: () => void) {
    this.facts = facts
    this.#busy = busy
    this.#refused = refused
  }

  /** Number of running handlers. */
  get running(): number {
    return this.#running
  }
  get waiting(): number {
    return this.#line.size + this.#returning.size
  }

  /** Returns a slot or a queue position. Throws `tooManyRequests` if the queue, or the owner's share of it, is full. */
  enter(call: Call): Turn {
    const turn = this.#turnOf(call)
    if (!this.#hold(turn)) turn.ready = this.#wait(turn, call)
    return turn
  }

  /** Like `enter`, for a call whose handler has run before: it has priority over the queue and is never refused. */
  enterAgain(call: Call): Turn {
    const turn = this.#turnOf(call)
    turn.ready = this.retake(turn)
    return turn
  }

  retake(turn: Turn): Promise<void> | undefined {
    if (this.#hold(turn)) return undefined
    return new Promise(resolve => {
      turn.begin = () => {
        this.#returning.delete(turn)
        this.#take(turn)
        resolve()
      }
      this.#returning.add(turn)
    })
  }

  #turnOf({ user, offer }: Call): Turn {
    return new Turn(holderOf({ user, ip: offer.ip }), this)
  }

  /** Returns false if no slot is free. */
  #hold(turn: Turn): boolean {
    if (this.#running >= this.facts.most) return false
    if (this.#running === 0) this.#busy.add(this)
    this.#running++
    this.#take(turn)
    return true
  }

  #take(turn: Turn) {
    this.#line.take(turn.owner)
    turn.hold()
  }

  /** Gives the slot of an owner to the next call. */
  passOn(owner: string) {
    this.#line.leave(owner)
    const next = this.#returning.oldest ?? this.#line.next()
    if (next?.begin) return next.begin()
    this.#running--
    if (this.#running === 0) this.#busy.delete(this)
  }

  #wait(turn: Turn, call: Call): Promise<void> {
    const { owner } = turn
    const { most, clock } = this.facts
    const { signal, deferred } = call
    // A deferred call was accepted earlier, under limits of its own, so it is not refused here.
    if (!deferred) this.#demandRoom(owner)
    const timeout = deferred ? undefined : this.facts.timeout
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
        if (!deferred) turn.waited = clock.monotonic() - since
        this.#take(turn)
        resolve()
      }
    })
  }

  #demandRoom(owner: string) {
    const own = this.#line.waitingOf(owner)
    if (own >= MAX_WAITING_CALLS_PER_OWNER) throw this.#full(`${calls(own)} of one user or address`)
    if (this.#line.size >= MAX_WAITING_CALLS) throw this.#full(calls(this.#line.size))
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

/** Wraps the handler so that the slot is freed when it ends. */
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
