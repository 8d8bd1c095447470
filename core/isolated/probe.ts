// Has a thread look at what it holds while it computes: the inspector interrupts even a loop without end. V8's own limit
// cannot be used: where one allocation is larger than what is left of it, V8 ends the process and not the thread.
import type { Worker } from 'node:worker_threads'
import { LOOK } from './held.ts'

export interface Probe {
  /** Has this thread look, at once; it tells by its port, and stands still, where it holds too much. */
  ask(worker: Worker): void
  /** Whether nothing can be asked: it has not answered yet, as amid a long call of native code, or cannot be reached. */
  owes(worker: Worker): boolean
}

const MESSAGE = JSON.stringify({
  id: 1,
  method: 'Runtime.evaluate',
  params: { expression: `void globalThis[Symbol.for(${JSON.stringify(LOOK.description)})]?.()` },
})

async function connect(): Promise<Probe | undefined> {
  if (!process.features.inspector) return undefined
  const { Session } = await import('node:inspector')
  const session = new Session()
  try {
    session.connect()
  } catch {
    // Node's permissions refuse it.
    return undefined
  }
  /** By the number of the thread. */
  const attached = new Map<string, string>()
  /** Of whom the answer is not there: a second question is lost, and all that come after it, where it comes amid the first. */
  const asked = new Set<string>()
  session.on('NodeWorker.attachedToWorker', ({ params: { sessionId, workerInfo } }) => {
    attached.set(workerInfo.workerId, sessionId)
  })
  session.on('NodeWorker.detachedFromWorker', ({ params: { sessionId } }) => {
    asked.delete(sessionId)
    for (const [number, id] of attached) if (id === sessionId) attached.delete(number)
  })
  session.on('NodeWorker.receivedMessageFromWorker', ({ params: { sessionId } }) => void asked.delete(sessionId))
  session.post('NodeWorker.enable', { waitForDebuggerOnStart: false })
  return {
    ask({ threadId }) {
      const sessionId = attached.get(String(threadId))
      if (sessionId === undefined || asked.has(sessionId)) return
      asked.add(sessionId)
      session.post('NodeWorker.sendMessageToWorker', { sessionId, message: MESSAGE })
    },
    owes({ threadId }) {
      const sessionId = attached.get(String(threadId))
      return sessionId === undefined || asked.has(sessionId)
    },
  }
}

let connecting: Promise<Probe | undefined> | undefined

/** One for the process, for good: what is opened a second time sees no threads. Undefined where Node has no inspector for us. */
export function openProbe(): Promise<Probe | undefined> {
  connecting ??= connect()
  return connecting
}
