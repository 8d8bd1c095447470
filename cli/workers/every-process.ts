// Requests to all workers through the primary. Counts in `lasting` stay in the total after a worker ends or does not respond.

import type { Worker } from 'node:cluster'
import cluster from 'node:cluster'
import type { InEveryProcess } from '../../core/host.ts'
import { isObject } from '../../core/plugin.ts'
import { isFromPrimary, isFromWorker, type PrimaryMessage, type WorkerMessage } from './message.ts'

/** Response timeout of each worker, milliseconds. */
const ANSWER_TIME = 2_000
/** Timeout of the requesting worker, milliseconds. */
const ASKING_TIME = ANSWER_TIME + 1_000

type Numbers = Readonly<Record<string, number>>

interface Lasting {
  readonly lasting: Numbers
}

interface Kept {
  readonly last: Map<number, Numbers>
  readonly ended: Map<string, number>
}

const hasLasting = (given: unknown): given is Lasting => isObject(given) && isObject(given['lasting'])

export function createLasting() {
  const names = new Map<string, Kept>()
  return {
    keep(name: string, worker: number, given: unknown): void {
      if (!hasLasting(given)) return
      const kept = names.get(name) ?? { last: new Map(), ended: new Map() }
      names.set(name, kept)
      kept.last.set(worker, given.lasting)
    },
    ended(worker: number): void {
      for (const { last, ended } of names.values()) {
        for (const [key, value] of Object.entries(last.get(worker) ?? {})) ended.set(key, (ended.get(key) ?? 0) + value)
        last.delete(worker)
      }
    },
    without(name: string, answered: ReadonlySet<number>): Lasting[] {
      const { last = [], ended } = names.get(name) ?? {}
      const silent = [...last].filter(([worker]) => !answered.has(worker)).map(([, lasting]) => ({ lasting }))
      return ended && ended.size > 0 ? [...silent, { lasting: Object.fromEntries(ended) }] : silent
    },
  }
}

interface Question {
  readonly name: string
  readonly given: unknown[]
  readonly answered: Set<number>
  readonly open: Set<number>
  settle(): void
}

const send = (worker: Worker, message: PrimaryMessage) => {
  if (worker.isConnected()) worker.send(message, () => {})
}

/** In the primary, once: relays requests to all workers. */
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
    if (!isFromWorker(message)) return
    if (message.mcpHost === 'asks') ask(worker, message.name, message.question)
    else if (message.mcpHost === 'gives') answered(worker, message.question, message.given)
  })
  cluster.on('exit', worker => {
    lasting.ended(worker.id)
    for (const number of questions.keys()) answered(worker, number)
  })
}

export function createInEveryProcess(tell: (message: WorkerMessage) => Promise<void>): InEveryProcess {
  const answers = new Map<string, () => unknown>()
  const asking = new Map<string, Promise<readonly unknown[]>>()
  const waiting = new Map<number, (given: readonly unknown[]) => void>()
  let last = 0

  async function answer(name: string, question: number) {
    const own = answers.get(name)
    if (own) await tell({ mcpHost: 'gives', question, given: await own() })
  }

  process.on('message', message => {
    if (!isFromPrimary(message)) return
    if (message.mcpHost === 'asked') void answer(message.name, message.question).catch(() => undefined)
    else if (message.mcpHost === 'given') waiting.get(message.question)?.(message.given)
  })

  function ask(name: string, own: () => unknown): Promise<readonly unknown[]> {
    const question = ++last
    return new Promise((resolve, reject) => {
      const settle = async (given?: readonly unknown[]) => {
        clearTimeout(timer)
        waiting.delete(question)
        resolve(given ?? [await own()])
      }
      const timer = setTimeout(() => void settle().catch(reject), ASKING_TIME)
      waiting.set(question, given => void settle(given).catch(reject))
      void tell({ mcpHost: 'asks', name, question })
    })
  }

  return (name, own) => {
    // A reload builds a second host to check the config, but the first host keeps serving.
    if (!answers.has(name)) answers.set(name, own)
    return () => {
      const asked = asking.get(name) ?? ask(name, own).finally(() => asking.delete(name))
      asking.set(name, asked)
      return asked
    }
  }
}
