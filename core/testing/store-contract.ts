// `storeContract`: the checks of a store that a plugin puts into a slot.
import type { Slots } from '../slots.ts'
import type { Bus } from '../store/bus.ts'
import type { Store } from '../store/store.ts'
import { busChecks } from './bus-checks.ts'
import { type Check, type ContractSettings, checksOf, type Promises } from './contract.ts'
import { eventStoreChecks } from './event-store-contract.ts'
import { storeChecks } from './store-checks.ts'

type Stores = Pick<Slots, 'eventStore'> & {
  readonly store: Store
  readonly bus: Bus
}

const CHECKS: { readonly [Slot in keyof Stores]: Promises<Stores[Slot]> } = {
  bus: busChecks,
  eventStore: eventStoreChecks,
  store: storeChecks,
}

/** Checks for a store in this slot, each with a `name` and a `run` function for a test runner. */
export const storeContract = <Slot extends keyof Stores>(
  slot: Slot,
  settings: ContractSettings<Stores[Slot]>,
): readonly Check[] => checksOf<Stores[Slot]>(settings, CHECKS[slot])
