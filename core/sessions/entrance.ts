// How a request enters its session: the store says whether it is still there and whether the request may run; a session that
// this node has never seen is built again from its record, and one that the store has lost is given back to it.
import { HostError } from '../http/errors.ts'
import { sameUser } from '../kernel/user.ts'
import type { RequestId } from '../mcp/protocol.ts'
import { type Caller, sameParams } from './callers.ts'
import type { NodeMessages } from './nodes/messages.ts'
import { notSure, perhapsRunning, running, sessionGone } from './refusals.ts'
import type { Session } from './session.ts'
import type { SessionOpening, SessionRecord } from './session-record.ts'
import type { Entered } from './session-store.ts'
import { takeRecord } from './take-record.ts'
import type { ThisNode } from './this-node.ts'

/** A request that names a session by its id, which its signature says to be the caller's. */
export interface Entering {
  readonly id: string
  readonly digest: string
  readonly caller: Caller
  readonly transport: string
  readonly requests: readonly RequestId[]
}

export interface EntranceParts {
  readonly node: ThisNode
  readonly runsAt: NodeMessages['runsAt']
  /** Gives a store that has lost it the record of a session here. False where it was ended. */
  readonly restore: (session: Session) => boolean | Promise<boolean>
  /** Makes a session of this node from its record: `configureSession` runs again. */
  readonly rebuild: (entering: Entering, record: SessionRecord) => Promise<Session>
  /** Runs the config's `runSession` for a session whose home died. */
  readonly adoptRun: (session: Session) => Promise<void>
}

/** Throws for a session that is not the caller's, or not at this address. */
function checkPlace({ caller, transport }: Entering, opening: SessionOpening) {
  const { route, params, user } = opening
  if (!sameUser(user, caller.user)) throw new HostError('forbidden', { detail: 'the session is not yours' })
  if (opening.transport !== transport || route !== caller.route.path || !sameParams(params, caller.params)) {
    throw sessionGone()
  }
}

const NOWHERE: readonly string[] = []

/** Throws, or rejects with, what the client is told where there is no such session, or one of its requests runs. */
export function createEntrance({ node, runsAt, restore, rebuild, adoptRun }: EntranceParts) {
  const { name, store, peers, bounds, sessions } = node
  const building = new Map<string, Promise<Session>>()

  const ask = (digest: string, requests: readonly RequestId[], from: readonly string[]) =>
    store.enter(digest, { version: sessions.get(digest)?.version ?? 0, requests, from }, bounds)

  /** The node that it is registered for says so. What runs here is refused when it would begin. */
  async function isRunning({ request, node: at }: Extract<Entered, { kind: 'taken' }>, digest: string) {
    if (at === name) return false
    const said = await runsAt(at, digest, request)
    if (said === undefined) throw perhapsRunning(request)
    return said
  }

  /** The store has no record. Throws, or resolves where this node could give it back. */
  async function restoreLost(digest: string, ended: boolean) {
    const held = sessions.get(digest)
    if (ended) held?.dispose(new Error('the session was ended'))
    // One that idled for too long lives on where it is asked for before it is swept.
    if (!ended && held && (await restore(held))) return
    throw !ended && !held && store.unsure ? notSure() : sessionGone()
  }

  /** The record, where it is newer than what is here. */
  async function awaitEntry({ digest, requests }: Entering, first: Entered) {
    const from: string[] = []
    let restored = false
    for (let entered = first; ; entered = await ask(digest, requests, from)) {
      if (entered.kind === 'entered') {
        if (entered.record || sessions.has(digest)) return entered.record
        // The copy went while the store was asked.
        from.push(name)
      } else if (entered.kind === 'taken') {
        if (await isRunning(entered, digest)) throw running(entered.request)
        from.push(entered.node)
      } else {
        if (restored) throw notSure()
        await restoreLost(digest, entered.ended)
        restored = true
      }
    }
  }

  function build(entering: Entering, record: SessionRecord): Promise<Session> {
    const { digest } = entering
    const under = building.get(digest) ?? rebuild(entering, record).finally(() => building.delete(digest))
    building.set(digest, under)
    return under
  }

  async function adopt(session: Session) {
    if (session.home === name || !session.offer.spansRun) return
    if (await peers.isAlive(session.home)) return
    if (!(await store.adopt(session.digest, session.home))) return
    // Its version stays behind: what others have changed since comes with the next record.
    session.home = name
    await adoptRun(session)
  }

  async function enterLater(entering: Entering, first: Entered | Promise<Entered>): Promise<Session> {
    const { digest, requests } = entering
    const record = await awaitEntry(entering, await first)
    try {
      if (record) checkPlace(entering, record.opening)
      const session = sessions.get(digest) ?? (record && (await build(entering, record)))
      if (!session || session.disposed) throw sessionGone()
      // It may have been built for another request meanwhile, at another address.
      checkPlace(entering, session.opening)
      if (record) takeRecord(session, record, name)
      await adopt(session)
      return session
    } catch (error) {
      store.leave(digest, requests)
      throw error
    }
  }

  return function enter(entering: Entering): Session | Promise<Session> {
    const { digest, requests } = entering
    const here = sessions.get(digest)
    // Not to be forgotten for being idle while the store is asked.
    if (here) here.lastUsed = node.clock.now()
    const entered = ask(digest, requests, NOWHERE)
    const isHere = !(entered instanceof Promise) && entered.kind === 'entered' && entered.record === undefined
    return here && isHere && here.home === name ? here : enterLater(entering, entered)
  }
}
