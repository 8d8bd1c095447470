// One call inside of its thread: what its handler says and asks on the way to the host, and what comes back.
import { errorText } from '../http/describe-thrown.ts'
import type { CallContext } from '../mcp/define.ts'
import { crossingFault } from './crossing.ts'
import type { Asked, AskMessage, CallData, FromThread, Told, ToThread } from './messages.ts'
import { packError, unpackError } from './pack-error.ts'
import { createThreadContext } from './thread-context.ts'

/** Messages to the client that may be on their way: what is said meanwhile is left out. */
const MAX_ON_THEIR_WAY = 100

interface Wiring {
  readonly id: number
  readonly tool: string
  readonly post: (message: FromThread) => void
  /** How many of what was told since the thread began the host has read. */
  readonly read: Int32Array<SharedArrayBuffer>
}

interface Waiting {
  resolve(value: never): void
  reject(reason: Error): void
}

export interface Running {
  readonly id: number
  readonly tool: string
  readonly ctx: CallContext
  hear(message: ToThread): void
  answer(value: unknown, held: number): void
  /** What its handler still says is not heard. */
  over(): void
}

/** Of this thread. */
let told = 0

/** The asks of one call: what is asked in one turn of the event loop leaves together. */
function createAsking({ id, post }: Wiring) {
  const waiting = new Map<number, Waiting>()
  let together: AskMessage[] = []
  let asked = 0

  function settle(n: number, end: (one: Waiting) => void) {
    const one = waiting.get(n)
    waiting.delete(n)
    if (one) end(one)
  }

  function leave() {
    const asks = together
    together = []
    try {
      post({ kind: 'ask', id, asks })
    } catch (cause) {
      const error = new TypeError('what ctx asks must be data, without functions', { cause })
      for (const { n } of asks) settle(n, one => one.reject(error))
    }
  }

  function ask<T>(what: Asked, args: readonly unknown[]): Promise<T> {
    const answer = new Promise<T>((resolve, reject) => {
      waiting.set(asked, { resolve, reject })
      if (together.length === 0) setImmediate(leave)
      together.push({ n: asked, what, args })
      asked++
    })
    // Whoever asks and does not wait has no error to hear of.
    answer.catch(() => undefined)
    return answer
  }

  return { ask, settle }
}

/** A handler's value, or why that cannot leave the thread. */
function answerTo({ id, post }: Wiring, value: unknown, held: number): void {
  let fault = crossingFault(value)
  try {
    if (fault === undefined) post({ kind: 'value', id, value, held })
  } catch (error) {
    fault = errorText(error)
  }
  if (fault === undefined) return
  const error = new TypeError(`its result cannot leave the thread: ${fault}`)
  post({ kind: 'thrown', id, error: packError(error), held })
}

export function createRunning(data: CallData, wiring: Wiring): Running {
  const { id, tool, post, read } = wiring
  const controller = new AbortController()
  const { ask, settle } = createAsking(wiring)
  let isOver = false

  function tell(what: Told, args: readonly unknown[]) {
    if (isOver || told - Atomics.load(read, 0) >= MAX_ON_THEIR_WAY) return
    post({ kind: 'tell', id, what, args })
    told++
  }

  return {
    id,
    tool,
    ctx: createThreadContext(data, { signal: controller.signal, tell, ask }),
    hear(message) {
      if (message.id !== id) return
      if (message.kind === 'abort') controller.abort(unpackError(message.reason))
      else if (message.kind === 'answer') settle(message.n, one => one.resolve(message.value as never))
      else if (message.kind === 'refusal') settle(message.n, one => one.reject(unpackError(message.error)))
    },
    answer: (value, held) => answerTo(wiring, value, held),
    over() {
      isOver = true
    },
  }
}
