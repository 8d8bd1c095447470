// Steps that the checks of session stores share.
import type { RequestId } from '../../../core/mcp/wire/protocol.ts'
import type { Entered, EntryRequest, SessionLimits, SessionStore } from '../../../core/sessions/session-store.ts'
import { FIRST_STATE, type SessionRecord } from '../../../core/sessions/session-store.ts'
import { pause } from '../../../core/testing/contract.ts'

export const BOUNDS: SessionLimits = {
  idleTimeout: 60_000,
  maxIdle: 1_000,
  maxPerOwner: undefined,
  maxCallsPerSession: 32,
  maxCallsPerOwner: 256,
}

export const createRecord = (node: string, holder = 'ada'): SessionRecord => ({
  opening: {
    transport: 'transport',
    route: '/t/:name?',
    params: { name: 'naïve 🦆' },
    holder,
    user: { subject: holder, scopes: ['read'], roles: [], claims: { deep: [1, null, { x: true }] } },
    ip: '127.0.0.1',
    headers: { 'x-tier': 'gold' },
  },
  state: FIRST_STATE,
  version: 1,
  home: node,
})

/** Returns the version. */
export const open = async (
  store: SessionStore,
  digest: string,
  holder?: string,
  bounds: Partial<SessionLimits> = {},
): Promise<number> => (await store.create(digest, createRecord(store.node, holder), { ...BOUNDS, ...bounds })) ?? 0

export const enter = (
  store: SessionStore,
  digest: string,
  visit: Partial<EntryRequest> = {},
  bounds: Partial<SessionLimits> = {},
) => store.enter(digest, { version: 0, requests: [], from: [], ...visit }, { ...BOUNDS, ...bounds })

export const readRecord = (entered: Entered): SessionRecord | undefined =>
  entered.kind === 'entered' ? entered.record : undefined

export const readKind = async (store: SessionStore, digest: string, requests: readonly RequestId[] = []) =>
  (await enter(store, digest, { requests })).kind

const STEP = 10

export const mark = async (
  store: SessionStore,
  uses: ReadonlyArray<readonly [string, string, boolean]>,
  bounds: Partial<SessionLimits> = {},
) => {
  // A store can use the later of its own and the reported time.
  await pause((uses.length + 1) * STEP)
  return store.mark(
    uses.map(([digest, holder, inUse], index) => ({ digest, holder, inUse, ago: (uses.length - index) * STEP })),
    { ...BOUNDS, ...bounds },
  )
}
