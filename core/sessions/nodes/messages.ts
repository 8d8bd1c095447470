// What nodes tell each other about a session: what happens to it at one node, and concerns another's part of it.
import type { RequestId } from '../../mcp/protocol.ts'
import type { PeerMessage } from '../peers.ts'
import type { Session } from '../session.ts'
import type { SessionKeeper } from '../session-keeper.ts'
import type { ThisNode } from '../this-node.ts'
import { createTakeChanged } from './changes-elsewhere.ts'
import { createPassOnce } from './passed-answers.ts'
import { createRunningElsewhere } from './running-elsewhere.ts'

/** Messages for a stream or its readers. */
export type StreamMessage = Extract<PeerMessage, { type: 'released' | 'follow' | 'written' | 'message' }>

export interface NodeMessages extends Pick<SessionKeeper<Session>, 'passAnswer' | 'passCancel' | 'nameQuestions'> {
  /** Told to those who have a copy; one that is not heard is found out with the next request. Undefined: to nobody. */
  tell(nodes: readonly string[], message: PeerMessage): Promise<unknown> | undefined
  /** Whether a node runs a request that is registered as its own; undefined where it does not say. */
  runsAt(node: string, digest: string, request: RequestId): Promise<boolean | undefined>
  /** From now on other nodes are heard; `receiveOther` takes what concerns streams. */
  listen(receiveOther: (message: StreamMessage) => void): void
}

export function createNodeMessages(node: ThisNode): NodeMessages {
  const { name, store, peers, clock, sessions, questionIds } = node
  const runs = (digest: string, request: RequestId) => sessions.get(digest)?.runs(request) ?? false
  const elsewhere = createRunningElsewhere(name, peers, clock, runs)
  const takeChanged = createTakeChanged(node)
  const passOnce = createPassOnce()

  function receive(message: Exclude<PeerMessage, StreamMessage>) {
    if (message.type === 'runs?') return elsewhere.tell(message)
    if (message.type === 'runs') return elsewhere.told(message)
    const session = sessions.get(message.session)
    if (!session) return
    if (message.type === 'answer') session.answerHere(message.id, message.body)
    else if (message.type === 'cancel') session.cancelHere(message.request, message.reason)
    else if (message.type === 'ended') session.dispose(new Error(message.reason))
    else takeChanged(session, message)
  }

  return {
    tell(nodes, message) {
      if (nodes.length === 0) return undefined
      return Promise.all(nodes.map(node => peers.send(node, message)))
    },
    async runsAt(node, digest, request) {
      return (await peers.isAlive(node)) ? elsewhere.ask(node, digest, request) : false
    },
    listen(receiveOther) {
      peers.receive(message => {
        if (isForStreams(message)) receiveOther(message)
        else receive(message)
      })
    },
    nameQuestions: session => questionIds.series(session.digest),
    passAnswer(session, id, body) {
      const asker = questionIds.askerOf(session.digest, id)
      if (asker === undefined || asker === name) return undefined
      return passOnce(session, id, () => peers.send(asker, { type: 'answer', session: session.digest, id, body }))
    },
    passCancel(session, id, reason) {
      const pass = async (at: string | undefined) => {
        if (at === undefined || at === name) return
        await peers.send(at, { type: 'cancel', session: session.digest, request: id, reason })
      }
      const at = store.nodeOf(session.digest, id)
      return at instanceof Promise ? at.then(pass) : pass(at)
    },
  }
}

const isForStreams = (message: PeerMessage): message is StreamMessage =>
  message.type === 'released' || message.type === 'follow' || message.type === 'written' || message.type === 'message'
