// Whether another node runs a request: its registration may be of an attempt that the store took and whose answer the node
// never had, so the node itself is asked. For messages.ts.
import type { Clock } from '../../http/clock.ts'
import type { RequestId } from '../../mcp/protocol.ts'
import type { PeerMessage, Peers } from '../peers.ts'

type Question = Extract<PeerMessage, { type: 'runs?' }>
type Answer = Extract<PeerMessage, { type: 'runs' }>

export interface RunningElsewhere {
  /** Undefined where the node does not say. */
  ask(at: string, session: string, request: RequestId): Promise<boolean | undefined>
  /** Another node asked. */
  tell(question: Question): void
  /** Another node said. */
  told(answer: Answer): void
}

/** How long the other node is waited for, milliseconds. */
const PATIENCE = 2_000

const nameOf = (session: string, request: RequestId) => `${session} ${JSON.stringify(request)}`

export function createRunningElsewhere(
  node: string,
  peers: Peers,
  clock: Clock,
  runs: (session: string, request: RequestId) => boolean,
): RunningElsewhere {
  const waiting = new Map<string, Set<(running: boolean | undefined) => void>>()

  function wait(name: string): Promise<boolean | undefined> {
    return new Promise(resolve => {
      const asked = waiting.get(name) ?? new Set()
      waiting.set(name, asked)
      const settle = (running: boolean | undefined) => {
        clock.clear(timer)
        asked.delete(settle)
        if (asked.size === 0) waiting.delete(name)
        resolve(running)
      }
      const timer = clock.setTimeout(() => settle(undefined), PATIENCE)
      asked.add(settle)
    })
  }

  return {
    async ask(at, session, request) {
      const said = wait(nameOf(session, request))
      await peers.send(at, { type: 'runs?', session, request, node })
      return said
    },
    tell({ session, request, node: asker }) {
      const told = peers.send(asker, { type: 'runs', session, request, running: runs(session, request) })
      // It asks again with the next attempt of the client.
      told.catch(() => undefined)
    },
    told({ session, request, running }) {
      for (const settle of [...(waiting.get(nameOf(session, request)) ?? [])]) settle(running)
    },
  }
}
