// Holds calls that wait for a response of the client. Limits their number and time.
import { randomUUID } from 'node:crypto'
import { ToolError } from '../../core/index.ts'
import { addCount, type CallQueue } from '../../core/internal.ts'
import type { Call, Clock, Timer } from '../../core/plugin.ts'
import { limitOwnerOf } from '../../core/transport.ts'
import type { Json, UpstreamRequest } from './upstream-request.ts'

interface HeldLimits {
  readonly max: number
  readonly maxPerUser: number
  /** Maximum duration, milliseconds. */
  readonly for: number
}

/** A slot of the server's `concurrency`. The constructor throws `tooManyRequests` if the queue is full. */
export class CallSlot {
  readonly #queue: CallQueue
  readonly #call: Call
  #slotEntry: ReturnType<CallQueue['enter']>

  constructor(queue: CallQueue, call: Call) {
    this.#queue = queue
    this.#call = call
    this.#slotEntry = queue.enter(call)
  }

  /** Undefined if the slot is free immediately. */
  get ready(): Promise<void> | undefined {
    return this.#slotEntry.ready
  }

  leave(): void {
    this.#slotEntry.leave()
  }

  /** Takes a slot for a call that continues. */
  async retake(): Promise<void> {
    this.#slotEntry = this.#queue.reenter(this.#call)
    await this.#slotEntry.ready
  }
}

export class ActiveCall {
  readonly run: UpstreamRequest
  readonly params: Json
  /** The user or address that the call counts for. */
  readonly owner: string
  readonly slot: CallSlot
  /** Releases the session of the call. */
  readonly end: () => void

  constructor(run: UpstreamRequest, params: Json, call: Call, slot: CallSlot, end: () => void) {
    this.run = run
    this.params = params
    this.owner = limitOwnerOf({ user: call.user, ip: call.offer.ip })
    this.slot = slot
    this.end = end
  }
}

export function createHeldCalls(limits: HeldLimits, clock: Clock) {
  const held = new Map<string, { readonly running: ActiveCall; readonly timer: Timer }>()
  const owners = new Map<string, number>()

  /** Removes and returns the call. Undefined if the call has ended or was already taken. */
  function take(id: string): ActiveCall | undefined {
    const entry = held.get(id)
    if (!entry) return undefined
    held.delete(id)
    clock.clear(entry.timer)
    addCount(owners, entry.running.owner, -1)
    return entry.running
  }

  function abandon(id: string) {
    const running = take(id)
    running?.run.giveUp()
    running?.end()
  }

  return {
    take,
    giveUp: abandon,
    get size() {
      return held.size
    },
    /** Adds a call. Throws a ToolError above the limits. */
    add(running: ActiveCall): string {
      const { owner } = running
      const ownerCount = owners.get(owner) ?? 0
      if (held.size >= limits.max || ownerCount >= limits.maxPerUser)
        throw new ToolError('Too many calls wait for a response of the user. Respond to one of them, or cancel it.')
      const id = randomUUID()
      held.set(id, { running, timer: clock.setTimeout(() => abandon(id), limits.for).unref() })
      addCount(owners, owner, 1)
      return id
    },
    close() {
      for (const id of [...held.keys()]) abandon(id)
    },
  }
}

export type HeldCalls = ReturnType<typeof createHeldCalls>
