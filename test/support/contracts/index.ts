// The checks of what sessions use, on every store: run by `describeContracts`.
import { type Check, type ContractSettings, checksOf, type Promises } from '../../../core/testing/contract.ts'
import type { ChangeBus, Peers, SessionStore } from '../../../core/transport.ts'
import { changeBusChecks } from './change-bus-contract.ts'
import { peersChecks } from './peers-contract.ts'
import { sessionStoreChecks } from './session-store-contract.ts'

interface Services {
  readonly changeBus: ChangeBus
  readonly peers: Peers
  readonly sessionStore: SessionStore
}

const CHECKS: { readonly [Slot in keyof Services]: Promises<Services[Slot]> } = {
  changeBus: changeBusChecks,
  peers: peersChecks,
  sessionStore: sessionStoreChecks,
}

export const serviceContract = <Slot extends keyof Services>(
  slot: Slot,
  settings: ContractSettings<Services[Slot]>,
): readonly Check[] => checksOf<Services[Slot]>(settings, CHECKS[slot])
