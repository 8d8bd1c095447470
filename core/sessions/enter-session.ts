// Admits a request to its session: checks the store, and rebuilds sessions of other nodes from their records.
import { sameUser } from '../kernel/user.ts'
import type { RequestFacts } from '../mcp/call.ts'
import type { RequestId } from '../mcp/protocol.ts'
import { takeRecord } from './node-messages.ts'
import { notSure, notYours, perhapsRunning, running, sessionGone } from './refusals.ts'
import type { Session, ThisNode } from './session.ts'
import type { Entered, SessionOpening, SessionRecord } from './session-store.ts'

/** The caller of a request. */
export type Caller = Pick<RequestFacts, 'route' | 'params' | 'user' | 'ip' | 'admitted'>

export const sameParams = (a: Caller['params'], b: Caller['params']) =>
  Object.keys({ ...a, ...b }).every(name => a[name] === b[name])

export interface Entering {
  readonly id: string
  readonly digest: string
  readonly caller: Caller
  readonly transport: string
  readonly requests: readonly RequestId[]
}

export interface EntranceParts {
  readonly node: ThisNode
  readonly runsAt: (node: string, digest: string, request: RequestId) => Promise<boolean | undefined>
  readonly restore: (session: Session) => boolean | Promise<boolean>
  readonly rebuild: (entering: Entering, record: SessionRecord) => Promise<Session>
  readonly adoptRun: (session: Session) => Promise<void>
}

/** Throws unless the session belongs to the caller, URL and transport. */
function checkPlace({ caller, transport }: Entering, { route, params, user, ...opening }: SessionOpening) {
  if (!sameUser(user, caller.user)) throw notYours()
  const isHere = opening.transport === transport && route === caller.route.path && sameParams(params, caller.params)
  if (!isHere) throw sessionGone()
}

export function createEntrance({ node, runsAt, restore, rebuild, adoptRun }: EntranceParts) {
  const { name, store, peers, bounds, sessions } = node
  const building = new Map<string, Promise<Session>>()

  const ask = (digest: string, requests: readonly RequestId[], from: readonly string[]) =>
    store.enter(digest, { version: sessions.get(digest)?.version ?? 0, requests, from }, bounds)

  async function restoreLost(digest: string, ended: boolean) {
    const held = sessions.get(digest)
    if (ended) held?.dispose(new Error('the session was ended'))
    else if (held && (await restore(held))) return
    throw !ended && !held && store.unsure ? notSure() : sessionGone()
  }

  async function awaitEntry({ digest, requests }: Entering, first: Entered) {
    const from: string[] = []
    let restored = false
    for (let entered = first; ; entered = await ask(digest, requests, from)) {
      if (entered.kind === 'entered') {
        if (entered.record || sessions.has(digest)) return entered.record
        from.push(name)
      } else if (entered.kind === 'taken') {
        const { node: at, request } = entered
        const runs = at === name ? false : await runsAt(at, digest, request)
        if (runs !== false) throw runs ? running(request) : perhapsRunning(request)
        from.push(at)
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
    // The version stays behind, so the next record brings other changes.
    session.home = name
    await adoptRun(session)
  }

  return async function enter(entering: Entering, first: Entered | Promise<Entered>): Promise<Session> {
    const { digest, requests } = entering
    const record = await awaitEntry(entering, await first)
    try {
      if (record) checkPlace(entering, record.opening)
      const session = sessions.get(digest) ?? (record && (await build(entering, record)))
      if (!session || session.disposed) throw sessionGone()
      // A concurrent request with another URL can have built it.
      checkPlace(entering, session.opening)
      if (record) takeRecord(session, record, name)
      await adopt(session)
      return session
    } catch (error) {
      store.leave(digest, requests)
      throw error
    }
  }
}
