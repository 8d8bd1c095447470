// Questions of isolated handlers, which run again with the responses.
import {
  type Asks,
  AwaitingInput,
  askLive,
  createKeys,
  demandCapability,
  type Interrupt,
  withHandledRejections,
} from './asks.ts'
import type { AskClient, Call } from './call.ts'
import { MAX_REPLAYED_BYTES, MAX_REPLAYED_QUESTIONS } from './limits.ts'
import type { Question } from './question.ts'
import { digest } from './request-state.ts'
import { ToolError } from './tool-error.ts'

/** What all runs of a call used together. */
export interface CallUsage {
  /** Milliseconds of CPU time. */
  cpuTime: number
}

/** The client's answers for a handler that runs again after each of them. */
export interface Replay {
  readonly answers: Map<string, { readonly question: string; readonly outcome: Promise<never> }>
  questions: number
  /** Bytes of the answers as JSON. */
  bytes: number
  /** The last reported progress, which must also increase across runs. */
  progress: number
  /** What the time limit leaves for further runs, milliseconds; undefined before the first run ends, or without a limit. */
  timeLeft: number | undefined
  readonly used: CallUsage
  /** Runs the handler again. */
  readonly again: () => unknown
}

/**
 * The questions of an isolated handler: its run ends with its questions, as in 2026-07-28, and `replay.again` runs it with the
 * answers. No thread is occupied while the client answers.
 */
export function createReplayedAsks(askClient: AskClient, call: Call, replay: Replay, interrupt: Interrupt): Asks {
  const used = new Set<string>()
  const keyFor = createKeys(key => used.has(key))
  let open: Array<{ readonly ask: () => Promise<unknown>; readonly reject: (reason: Error) => void }> = []

  function keep(answer: never): never {
    replay.bytes += Buffer.byteLength(JSON.stringify(answer))
    if (replay.bytes > MAX_REPLAYED_BYTES)
      throw new ToolError('The responses to the questions of this call are too large.')
    return answer
  }

  function leave() {
    if (open.length === 0) return
    const asked = open
    open = []
    interrupt(() =>
      Promise.allSettled(asked.map(({ ask }) => ask())).then(() => {
        call.signal.throwIfAborted()
        return replay.again()
      }),
    )
    for (const { reject } of asked) reject(new AwaitingInput())
  }

  async function ask(question: Question, given?: string): Promise<never> {
    demandCapability(call, question)
    const key = keyFor(question.method, given)
    used.add(key)
    const name = digest(question)
    const known = replay.answers.get(key)
    if (known?.question === name) return known.outcome
    if (++replay.questions > MAX_REPLAYED_QUESTIONS)
      throw new ToolError(`A call of an isolated tool asks at most ${MAX_REPLAYED_QUESTIONS} questions.`)
    return new Promise<never>((_, reject) => {
      const askClientNow = () => {
        const outcome = askLive(askClient, call, question, call.signal, given).then(keep)
        replay.answers.set(key, { question: name, outcome })
        return outcome
      }
      open.push({ ask: askClientNow, reject })
      // As in 2026-07-28, questions of the same turn are sent together.
      setImmediate(leave)
    })
  }

  return withHandledRejections(ask)
}
