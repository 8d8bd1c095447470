// What threads hold, asked while they compute: the inspector interrupts even a loop without end. V8's own limit cannot be
// used: where one allocation is larger than what is left of it, V8 ends the process and not the thread.
import type { Worker } from 'node:worker_threads'
import { HELD } from './held.ts'

export interface Probe {
  /** Bytes; undefined where the thread does not answer at all. `collect`: without garbage. */
  held(worker: Worker, collect: boolean): Promise<number | undefined>
  close(): void
}

interface Answer {
  readonly id: number
  readonly result?: { readonly result?: { readonly value?: unknown } }
}

const expression = (collect: boolean) => `globalThis[Symbol.for(${JSON.stringify(HELD.description)})]?.(${collect})`

/** Undefined where Node was built without an inspector. */
export async function openProbe(): Promise<Probe | undefined> {
  if (!process.features.inspector) return undefined
  const { Session } = await import('node:inspector')
  const session = new Session()
  session.connect()
  /** By the number of the thread. */
  const attached = new Map<string, string>()
  const waiting = new Map<number, (value: number | undefined) => void>()
  let asked = 0

  session.on('NodeWorker.attachedToWorker', ({ params: { sessionId, workerInfo } }) => {
    attached.set(workerInfo.workerId, sessionId)
  })
  session.on('NodeWorker.detachedFromWorker', ({ params: { sessionId } }) => {
    for (const [number, id] of attached) if (id === sessionId) attached.delete(number)
  })
  session.on('NodeWorker.receivedMessageFromWorker', ({ params: { message } }) => {
    const { id, result }: Answer = JSON.parse(message)
    const value = result?.result?.value
    waiting.get(id)?.(typeof value === 'number' ? value : undefined)
    waiting.delete(id)
  })
  session.post('NodeWorker.enable', { waitForDebuggerOnStart: false })

  return {
    held(worker, collect) {
      const sessionId = attached.get(String(worker.threadId))
      if (sessionId === undefined) return Promise.resolve(undefined)
      const id = asked++
      return new Promise(resolve => {
        const done = (value: number | undefined) => {
          worker.off('exit', gone)
          resolve(value)
        }
        const gone = () => {
          waiting.delete(id)
          resolve(undefined)
        }
        worker.once('exit', gone)
        waiting.set(id, done)
        const message = JSON.stringify({ id, method: 'Runtime.evaluate', params: { expression: expression(collect) } })
        session.post('NodeWorker.sendMessageToWorker', { sessionId, message })
      })
    },
    close() {
      session.post('NodeWorker.disable')
      session.disconnect()
    },
  }
}
