// `storeContract`: the checks of a store or bus of a plugin.
import type { Bus } from '../store/bus.ts'
import type { Store } from '../store/store.ts'
import { busChecks } from './bus-checks.ts'
import { type Check, type Contract, type ContractSettings, checksOf } from './contract.ts'
import { storeChecks } from './store-checks.ts'

interface Stores {
  readonly store: Store
  readonly bus: Bus
}

const CHECKS: { readonly [Name in keyof Stores]: Contract<Stores[Name]> } = { bus: busChecks, store: storeChecks }

/** Checks for a store or bus, each with a `name` and a `run` function for a test runner. */
export const storeContract = <Name extends keyof Stores>(
  name: Name,
  settings: ContractSettings<Stores[Name]>,
): readonly Check[] => checksOf<Stores[Name]>(settings, CHECKS[name])
