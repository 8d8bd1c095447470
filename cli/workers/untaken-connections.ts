// A connection on its way to a worker that dies is taken by nobody: node:cluster would keep it open for ever, and its
// client waiting. This closes it, so that the client hears at once.
import type { Worker } from 'node:cluster'

/** What node:cluster sends with a connection: not documented, the same since Node 0.12. Without it nothing is closed. */
interface Handed {
  readonly act: 'newconn'
  readonly seq: number
}

interface Closable {
  close(): void
}

const isHanded = (message: unknown): message is Handed =>
  typeof message === 'object' && message !== null && 'seq' in message && 'act' in message && message.act === 'newconn'

/** Watches what the primary hands to a worker that was just made. */
export function closeUntaken({ process: child }: Worker): void {
  const untaken = new Map<unknown, Closable>()
  const send = child.send.bind(child) as (...args: unknown[]) => boolean
  child.send = (...args: unknown[]) => {
    const [message, handle] = args
    if (isHanded(message) && handle !== undefined) untaken.set(message.seq, handle as Closable)
    return send(...args)
  }
  child.on('internalMessage', (message: { ack?: unknown } | null) => untaken.delete(message?.ack))
  child.once('exit', () => {
    for (const connection of untaken.values()) connection.close()
  })
}
