// What the checks of grant stores do again and again. For grant-store-contract.ts and grant-sets-contract.ts.
import { GRANT_KINDS, type GrantStore } from '../access/grant-store.ts'
import type { Expiry } from './contract.ts'

export const MINUTE = 60_000
/** More than 2^31 milliseconds, which timers cannot wait for. */
export const LONG = 90 * 86_400_000
/** Operations at the same time. */
export const MANY = 50

/** Of both kinds everything holds. */
export const KEYS = Object.values(GRANT_KINDS).map(kind => `${kind}one`)
export const [PENDING = '', GRANTED = ''] = KEYS

/** A check for a key of each kind, at the same time. */
export const forBoth =
  (act: (store: GrantStore, key: string, expiry: Expiry) => Promise<void>) =>
  async (store: GrantStore, expiry: Expiry) => {
    await Promise.all(KEYS.map(key => act(store, key, expiry)))
  }

/** So many at the same time, by turns at each of the stores. */
export const race = <Value>(stores: readonly GrantStore[], act: (store: GrantStore, index: number) => Promise<Value>) =>
  Promise.all(Array.from({ length: MANY }, (_, index) => act(stores[index % stores.length] as GrantStore, index)))
