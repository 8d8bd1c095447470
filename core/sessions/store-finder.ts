// Finds sessions in the store, registers their requests there, and rebuilds sessions of other nodes from records.
import { getOrCreate } from '../http/get-or-create.ts'
import { sameUser } from '../kernel/user.ts'
import type { RequestInfo } from '../mcp/calls/call.ts'
import type { RequestId } from '../mcp/wire/protocol.ts'
import { applyRecord } from './node-messages.ts'
import type { Session, ThisNode } from './session.ts'
import { maybeRunning, notOwner, restoring, running, sessionNotFound } from './session-errors.ts'
import type { SessionOpening, SessionRecord, SessionStore } from './session-store.ts'

export type Caller = Pick<RequestInfo, 'route' | 'params' | 'user' | 'ip' | 'authorized'>

export const sameParams = (a: Caller['params'], b: Caller['params']) =>
  Object.keys({ ...a, ...b }).every(name => a[name] === b[name])

export interface SessionLookup {
  readonly id: string
  readonly digest: string
  readonly caller: Caller
  readonly transport: string
  readonly requests: readonly RequestId[]
}

interface StoreFinderParts {
  readonly node: ThisNode & { readonly store: SessionStore }
  readonly isRunningAt: (node: string, digest: string, request: RequestId) => Promise<boolean | undefined>
  readonly restore: (session: Session) => Promise<boolean>
  readonly rebuild: (request: SessionLookup, record: SessionRecord) => Promise<Session>
  readonly adoptRun: (session: Session) => Promise<void>
}

/** Throws unless the session belongs to the caller, URL and transport. */
function checkSession({ caller, transport }: SessionLookup, { route, params, user, ...opening }: SessionOpening) {
  if (!sameUser(user, caller.user)) throw notOwner()
  const hasSameUrl = route === caller.route.path && sameParams(params, caller.params)
  if (!hasSameUrl || opening.transport !== transport) throw sessionNotFound()
}

export function createStoreFinder({ node, isRunningAt, restore, rebuild, adoptRun }: StoreFinderParts) {
  const { name, store, peers, limits, sessions } = node
  const building = new Map<string, Promise<Session>>()

  async function restoreLocal(digest: string, isEnded: boolean) {
    const local = sessions.get(digest)
    if (isEnded) local?.dispose(new Error('the session was ended'))
    else if (local && (await restore(local))) return
    throw !isEnded && !local && store.isRecovering ? restoring() : sessionNotFound()
  }

  async function enterStore({ digest, requests }: SessionLookup) {
    const from: string[] = []
    let restored = false
    for (;;) {
      const version = sessions.get(digest)?.version ?? 0
      const entered = await store.enter(digest, { version, requests, from }, limits)
      if (entered.kind === 'entered') {
        if (entered.record || sessions.has(digest)) return entered.record
        from.push(name)
      } else if (entered.kind === 'taken') {
        const { node: owner, request } = entered
        const isRunning = owner === name ? false : await isRunningAt(owner, digest, request)
        if (isRunning !== false) throw isRunning ? running(request) : maybeRunning(request)
        from.push(owner)
      } else {
        if (restored) throw restoring()
        await restoreLocal(digest, entered.ended)
        restored = true
      }
    }
  }

  function build(request: SessionLookup, record: SessionRecord): Promise<Session> {
    const start = () => rebuild(request, record).finally(() => building.delete(request.digest))
    return getOrCreate(building, request.digest, start)
  }

  async function adopt(session: Session) {
    if (session.home === name || !session.offer.hasRunSession) return
    if (await peers.isAlive(session.home)) return
    if (!(await store.adopt(session.digest, session.home))) return
    // The version is not updated, so that a newer record with other changes is still applied.
    session.home = name
    await adoptRun(session)
  }

  return async function findInStore(request: SessionLookup): Promise<Session> {
    const { digest, requests } = request
    // Prevents an idle sweep during the store request.
    const local = sessions.get(digest)
    if (local) local.lastUsed = node.clock.now()
    const record = await enterStore(request)
    try {
      if (record) checkSession(request, record.opening)
      const session = sessions.get(digest) ?? (record && (await build(request, record)))
      if (!session || session.disposed) throw sessionNotFound()
      // A concurrent request with another URL may have built the session.
      checkSession(request, session.opening)
      if (session.isUnrestored && !(await restore(session))) throw sessionNotFound()
      if (record) applyRecord(session, record, name)
      await adopt(session)
      return session
    } catch (error) {
      store.leave(digest, requests)
      throw error
    }
  }
}
