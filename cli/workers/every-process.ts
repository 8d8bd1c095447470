// What all workers are asked: one asks the primary, which asks each of them and passes on what they gave. Whoever does not
// answer in time, as one that starts or ends, is left out; of what it counted there is its last answer (lasting.ts).

import type { Worker } from 'node:cluster'
import cluster from 'node:cluster'
import type { InEveryProcess } from '../../core/create-host.ts'
import { isObject } from '../../core/index.ts'
import { isPassed, isTold, type Passed, type Told } from './message.ts'

/** How long each worker may take to answer, milliseconds. */
const ANSWER_TIME = 2_000
/** How long the one that asks waits for all of them, milliseconds. */
const ASKING_TIME = ANSWER_TIME + 1_000

interface Question {
  readonly name: string
  readonly given: unknown[]
  /** The workers that gave it. */
  readonly answered: Set<number>
  readonly open: Set<number>
  settle(): void
}

const send = (worker: Worker, message: Passed) => {
  if (worker.isConnected()) worker.send(message, () => {})
}

/** In the primary, once: passes questions on. */
export function passQuestions(): void {
  const questions = new Map<number, Question>()
  const lasting = createLasting()
  let last = 0

  function ask(asker: Worker, name: string, number: number) {
    const question = ++last
    const asked = Object.values(cluster.workers ?? {}).flatMap(worker => (worker?.isConnected() ? [worker] : []))
    const given: unknown[] = []
    const answered = new Set<number>()
    const settle = () => {
      clearTimeout(timer)
      questions.delete(question)
      send(asker, { mcpHost: 'given', question: number, given: [...given, ...lasting.without(name, answered)] })
    }
    const timer = setTimeout(settle, ANSWER_TIME)
    questions.set(question, { name, given, answered, open: new Set(asked.map(({ id }) => id)), settle })
    for (const worker of asked) send(worker, { mcpHost: 'asked', name, question })
  }

  function answered(worker: Worker, number: number, ...given: unknown[]) {
    const question = questions.get(number)
    if (!question?.open.delete(worker.id)) return
    question.given.push(...given)
    if (given.length > 0) {
      question.answered.add(worker.id)
      lasting.keep(question.name, worker.id, given[0])
    }
    if (question.open.size === 0) question.settle()
  }

  cluster.on('message', (worker, message: unknown) => {
    if (!isTold(message)) return
    if (message.mcpHost === 'asks') ask(worker, message.name, message.question)
    else if (message.mcpHost === 'gives') answered(worker, message.question, message.given)
  })
  cluster.on('exit', worker => {
    lasting.ended(worker.id)
    for (const number of [...questions.keys()]) answered(worker, number)
  })
}

/** In a worker: what it answers, and how it asks. `tell`: the primary. */
export function createInEveryProcess(tell: (message: Told) => Promise<void>): InEveryProcess {
  const answers = new Map<string, () => unknown>()
  const asking = new Map<string, Promise<readonly unknown[]>>()
  const waiting = new Map<number, (given: readonly unknown[]) => void>()
  let last = 0

  async function answer(name: string, question: number) {
    const own = answers.get(name)
    if (own) await tell({ mcpHost: 'gives', question, given: await own() })
  }

  process.on('message', message => {
    if (!isPassed(message)) return
    if (message.mcpHost === 'asked') void answer(message.name, message.question).catch(() => undefined)
    else waiting.get(message.question)?.(message.given)
  })

  function ask(name: string, own: () => unknown): Promise<readonly unknown[]> {
    const question = ++last
    return new Promise((resolve, reject) => {
      const settle = async (given?: readonly unknown[]) => {
        clearTimeout(timer)
        waiting.delete(question)
        // Where nobody passes it on, there is this process.
        resolve(given ?? [await own()])
      }
      const timer = setTimeout(() => void settle().catch(reject), ASKING_TIME)
      waiting.set(question, given => void settle(given).catch(reject))
      void tell({ mcpHost: 'asks', name, question })
    })
  }

  return (name, own) => {
    // A reload builds a second host beside the first, to check it: the first is the one that serves.
    if (!answers.has(name)) answers.set(name, own)
    return () => {
      const asked = asking.get(name) ?? ask(name, own).finally(() => asking.delete(name))
      asking.set(name, asked)
      return asked
    }
  }
}

type Numbers = Readonly<Record<string, number>>

/** As an answer of a worker that has nothing else to say. */
interface Left {
  readonly lasting: Numbers
}

interface Kept {
  /** Of workers, by their id: their last. */
  readonly last: Map<number, Numbers>
  /** Of all that ended, added up. */
  readonly ended: Map<string, number>
}

const hasLasting = (given: unknown): given is Left => isObject(given) && isObject(given['lasting'])

export interface Lasting {
  /** A worker gave this for a name. */
  keep(name: string, worker: number, given: unknown): void
  ended(worker: number): void
  /** What there is for a name beside the answers of these workers. */
  without(name: string, answered: ReadonlySet<number>): Left[]
}

export function createLasting(): Lasting {
  const names = new Map<string, Kept>()
  return {
    keep(name, worker, given) {
      if (!hasLasting(given)) return
      const kept = names.get(name) ?? { last: new Map(), ended: new Map() }
      names.set(name, kept)
      kept.last.set(worker, given.lasting)
    },
    ended(worker) {
      for (const { last, ended } of names.values()) {
        for (const [key, value] of Object.entries(last.get(worker) ?? {})) ended.set(key, (ended.get(key) ?? 0) + value)
        last.delete(worker)
      }
    },
    without(name, answered) {
      const { last = [], ended } = names.get(name) ?? {}
      const silent = [...last].filter(([worker]) => !answered.has(worker)).map(([, lasting]) => ({ lasting }))
      return ended && ended.size > 0 ? [...silent, { lasting: Object.fromEntries(ended) }] : silent
    },
  }
}
