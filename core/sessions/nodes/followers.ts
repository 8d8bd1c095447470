// Nodes whose clients read along on streams of this node: they hear when there is more. What is written while a node is
// being told is told once; one that follows a stream that is over here hears so, for the store may have lost its end.
import type { PeerMessage } from '../peers.ts'
import type { Session } from '../session.ts'
import type { ThisNode } from '../this-node.ts'

export interface Followers {
  add(message: Extract<PeerMessage, { type: 'follow' }>): void
  /** There is more on a stream. */
  tell(session: Session, stream: string): void
}

interface Follower {
  telling: boolean
  more: boolean
}

/** How long a node that followed is told, milliseconds; one that reads on asks again. */
const LIFETIME = 60_000

export function createFollowers({ peers, clock, sessions }: ThisNode): Followers {
  const followers = new Map<string, Map<string, Follower>>()

  async function tellOne(node: string, follower: Follower, session: string, stream: string) {
    follower.more = true
    if (follower.telling) return
    follower.telling = true
    try {
      while (follower.more) {
        follower.more = false
        await peers.send(node, { type: 'written', session, stream })
      }
    } catch {
      // It looks for itself each second.
    } finally {
      follower.telling = false
    }
  }

  function tellOver(node: string, session: string, stream: string) {
    // It asks again.
    peers.send(node, { type: 'written', session, stream, over: true }).catch(() => undefined)
  }

  return {
    add({ session, stream, node }) {
      const isHere = sessions.get(session)?.streams.has(stream) ?? false
      if (!isHere) return tellOver(node, session, stream)
      const nodes = followers.get(stream) ?? new Map<string, Follower>()
      const follower = nodes.get(node) ?? { telling: false, more: false }
      if (!nodes.has(node)) {
        followers.set(stream, nodes.set(node, follower))
        const forget = () => {
          nodes.delete(node)
          if (nodes.size === 0) followers.delete(stream)
        }
        clock.setTimeout(forget, LIFETIME).unref()
      }
      // What was written before this came.
      void tellOne(node, follower, session, stream)
    },
    tell(session, stream) {
      for (const [node, follower] of followers.get(stream) ?? []) void tellOne(node, follower, session.digest, stream)
    },
  }
}
