// The hub of one host (hub.ts) over the channels that node:cluster has between the primary and its workers.
import cluster from 'node:cluster'
import type { Logger } from '../../core/create-host.ts'
import { createCounts, createHub, type Member } from './hub.ts'
import { type ForHub, isForHub, isOfHub, type OfHub } from './message.ts'
import type { HubChannel } from './neighbours.ts'

/** In the primary, once: every worker reaches the others. */
export function connectWorkers(log: Logger): void {
  const hub = createHub(undefined, {}, createCounts(log))
  const members = new Map<number, Member>()
  cluster.on('fork', worker => {
    const send = (message: OfHub, sent: () => void) => {
      if (worker.isConnected()) worker.send(message, sent)
      else sent()
    }
    members.set(
      worker.id,
      hub.connect((message, sent) => send({ mcpHost: 'hub', message }, sent)),
    )
  })
  cluster.on('message', (worker, message: unknown) => {
    if (isForHub(message)) members.get(worker.id)?.take(message.message)
  })
  const gone = (id: number) => {
    members.get(id)?.gone()
    members.delete(id)
  }
  // A worker that hangs when its channel breaks is as gone as one that ended.
  cluster.on('disconnect', worker => gone(worker.id))
  cluster.on('exit', worker => gone(worker.id))
}

/** In a worker. */
export const hubOfPrimary = (): HubChannel => ({
  send(message) {
    if (!process.connected || !process.send) return false
    return process.send({ mcpHost: 'hub', message } satisfies ForHub, () => {}) || process.connected
  },
  receive(listener) {
    process.on('message', message => {
      if (isOfHub(message)) listener(message.message)
    })
  },
})
