// Limits concurrent calls per tool; further calls wait in a queue that is fair between callers.
import type { Clock } from '../../http/clock.ts'
import { HostError } from '../../http/errors.ts'
import type { Linked, LinkedList } from '../../http/linked-list.ts'
import {
  limitOwnerOf,
  MAX_PAUSED_PER_SLOT,
  MAX_PAUSED_PER_SLOT_AND_OWNER,
  MAX_WAITING_CALLS,
  MAX_WAITING_CALLS_PER_OWNER,
} from '../client-limits.ts'
import { ToolError } from '../definitions/tool-error.ts'
import type { Call } from './call.ts'
import { FairQueue, type Queued } from './fair-queue.ts'

export class QueueEntry implements Queued {
  older?: this | undefined
  newer?: this | undefined
  linked?: boolean
  ready: Promise<void> | undefined
  /** Milliseconds in the queue. */
  waited = 0
  start: (() => void) | undefined
  isResuming = false
  readonly owner: string
  readonly #queue: CallQueue
  #held = false
  #over = false
  #reacquiring: Promise<void> | undefined

  constructor(owner: string, queue: CallQueue) {
    this.owner = owner
    this.#queue = queue
  }

  hold() {
    this.#held = true
    this.isResuming = false
    this.#reacquiring = undefined
    if (this.#over) this.leave()
  }

  leave() {
    this.#over = true
    if (this.#held) {
      this.#held = false
      this.#queue.free(this.owner)
    } else if (this.isResuming && !this.#reacquiring) {
      this.isResuming = false
      this.#queue.unpause(this.owner)
    }
  }

  pause() {
    if (!this.#held) return
    this.#held = false
    this.isResuming = true
    this.#queue.pause(this.owner)
  }

  /** Resolves when the handler has a slot again; undefined if it has one. A cancelled handler also needs a slot. */
  reacquire(): Promise<void> | undefined {
    if (this.#held || this.#over) return undefined
    this.#reacquiring ??= this.#queue.reacquire(this)
    return this.#reacquiring
  }
}

interface CallQueueSettings {
  readonly tool: string
  readonly most: number
  /** Time limit of a whole call, including queue time, milliseconds. Undefined: no limit. */
  readonly timeout: number | undefined
  readonly clock: Clock
}

/** Value of `Retry-After`, seconds: an estimate, because handler durations are unknown. */
const SOON = 1

const calls = (count: number) => `${count} call${count === 1 ? '' : 's'}`

export class CallQueue implements Linked {
  older?: this | undefined
  newer?: this | undefined
  linked?: boolean
  readonly facts: CallQueueSettings
  readonly #busy: LinkedList<CallQueue>
  readonly #refused: () => void
  readonly #calls = new FairQueue<QueueEntry>()

  constructor(facts: CallQueueSettings, busy: LinkedList<CallQueue>, refused: () => void) {
    this.facts = facts
    this.#busy = busy
    this.#refused = refused
  }

  get running(): number {
    return this.#calls.slots
  }
  get waiting(): number {
    return this.#calls.size
  }

  /** Adds a call to the queue. Throws `tooManyRequests` if the queue, or the owner's share of the queue, is full. */
  enter(call: Call): QueueEntry {
    const entry = this.#createEntry(call)
    if (this.#isFree() && this.#canStart(entry)) this.#take(entry)
    else entry.ready = this.#wait(entry, call)
    return entry
  }

  reenter(call: Call): QueueEntry {
    const entry = this.#createEntry(call)
    entry.isResuming = true
    this.#calls.pause(entry.owner)
    entry.ready = this.reacquire(entry)
    return entry
  }

  reacquire(entry: QueueEntry): Promise<void> | undefined {
    if (this.#isFree()) {
      this.#take(entry)
      this.#startNext()
      return undefined
    }
    const { owner } = entry
    return new Promise(resolve => {
      entry.start = () => {
        this.#calls.delete(owner, entry)
        this.#take(entry)
        resolve()
      }
      this.#calls.add(owner, entry)
    })
  }

  free(owner: string) {
    this.#calls.leave(owner)
    this.#startNext()
  }

  pause(owner: string) {
    this.#calls.pause(owner)
    this.free(owner)
  }

  unpause(owner: string) {
    this.#calls.unpause(owner)
    this.#startNext()
  }

  #createEntry({ user, offer }: Call): QueueEntry {
    return new QueueEntry(limitOwnerOf({ user, ip: offer.ip }), this)
  }

  #isFree(): boolean {
    return this.#calls.slots < this.facts.most
  }

  /** True if a call can start. Paused handlers can resume at any time, so too many of them delay new calls. */
  #canStart({ owner, isResuming }: QueueEntry): boolean {
    const { most } = this.facts
    if (isResuming) return true
    return (
      this.#calls.pausedOf(owner) < MAX_PAUSED_PER_SLOT_AND_OWNER * most &&
      this.#calls.paused < MAX_PAUSED_PER_SLOT * most
    )
  }

  #take(entry: QueueEntry) {
    this.#calls.take(entry.owner)
    if (entry.isResuming) this.#calls.unpause(entry.owner)
    this.#noteBusy()
    entry.hold()
  }

  #startNext() {
    while (this.#isFree()) {
      const next = this.#calls.next(entry => this.#canStart(entry))
      if (!next?.start) break
      next.start()
    }
    this.#noteBusy()
  }

  #noteBusy() {
    const isBusy = this.#calls.slots + this.#calls.size > 0
    if (!isBusy) this.#busy.delete(this)
    else if (!this.linked) this.#busy.add(this)
  }

  #wait(entry: QueueEntry, call: Call): Promise<void> {
    const { owner } = entry
    const { most, clock } = this.facts
    const { signal, deferred } = call
    call.notes.timeline?.mark('queue')
    if (!deferred) this.#checkSpace(owner)
    const timeout = deferred ? undefined : this.facts.timeout
    if (signal.aborted) return Promise.reject(cancelled())
    const since = clock.monotonic()
    this.#calls.add(owner, entry)
    this.#noteBusy()
    return new Promise((resolve, reject) => {
      const leaveQueue = () => {
        clock.clear(timer)
        signal.removeEventListener('abort', onAbort)
        this.#calls.delete(owner, entry)
      }
      const fail = (error: Error) => {
        leaveQueue()
        this.#noteBusy()
        reject(error)
      }
      const onAbort = () => fail(cancelled())
      const late = () => {
        const why = `it did not start within ${timeout} ms; at most ${calls(most)} of this tool can run at once`
        fail(new HostError('callTimeout', { detail: why }))
      }
      const timer = timeout === undefined ? undefined : clock.setTimeout(late, timeout)
      signal.addEventListener('abort', onAbort, { once: true })
      entry.start = () => {
        leaveQueue()
        if (!deferred) entry.waited = clock.monotonic() - since
        this.#take(entry)
        resolve()
      }
    })
  }

  #checkSpace(owner: string) {
    const own = this.#calls.waitingOf(owner)
    if (own >= MAX_WAITING_CALLS_PER_OWNER) throw this.#full(`${calls(own)} of one user or address`)
    const waiting = this.#calls.size - this.#calls.resuming
    if (waiting >= MAX_WAITING_CALLS) throw this.#full(calls(waiting))
  }

  #full(waiting: string): HostError {
    this.#refused()
    const { tool, most } = this.facts
    const what = `at most ${calls(most)} of "${tool}" can run at once, and ${waiting} are queued`
    return new HostError('tooManyRequests', {
      detail: `${what}; try again in ${SOON} s`,
      headers: { 'Retry-After': String(SOON) },
      data: { reason: 'busy', limit: 'concurrency', retryAfter: SOON, retryable: true },
      reason: `concurrency of ${tool}: ${most}`,
    })
  }
}

const cancelled = () => new ToolError('The call was cancelled before it ran.')
