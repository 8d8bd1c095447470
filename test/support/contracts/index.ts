// The checks of sessions, streams, grants and tasks on every store: run by `describeContracts`.

import { type Check, type Contract, type ContractSettings, checksOf } from '../../../core/testing/contract.ts'
import type { ChangeBus, EventStore, Peers, SessionStore } from '../../../core/transport.ts'
import type { GrantStore } from '../../../plugins/families/grant-store/index.ts'
import type { TaskStore } from '../../../plugins/families/task-store/index.ts'
import { changeBusChecks } from './change-bus-contract.ts'
import { eventStoreChecks } from './event-store-contract.ts'
import { grantStoreChecks } from './grant-store-contract.ts'
import { peersChecks } from './peers-contract.ts'
import { sessionStoreChecks } from './session-store-contract.ts'
import { taskStoreChecks } from './task-store-contract.ts'

interface Services {
  readonly changeBus: ChangeBus
  readonly eventStore: EventStore
  readonly grantStore: GrantStore
  readonly peers: Peers
  readonly sessionStore: SessionStore
  readonly taskStore: TaskStore
}

const CHECKS: { readonly [Slot in keyof Services]: Contract<Services[Slot]> } = {
  changeBus: changeBusChecks,
  eventStore: eventStoreChecks,
  grantStore: grantStoreChecks,
  peers: peersChecks,
  sessionStore: sessionStoreChecks,
  taskStore: taskStoreChecks,
}

export const serviceContract = <Slot extends keyof Services>(
  slot: Slot,
  settings: ContractSettings<Services[Slot]>,
): readonly Check[] => checksOf<Services[Slot]>(settings, CHECKS[slot])
