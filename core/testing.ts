// `mcp-host/testing`: the contracts of the store slots, for whoever writes a store. Each is a list of named checks that any
// test runner runs; docs/plugins.md, "Writing a store".
export { changeBusContract } from './testing/change-bus-contract.ts'
export type { Check, ContractSettings, Opened } from './testing/contract.ts'
export { eventStoreContract } from './testing/event-store-contract.ts'
export { peersContract } from './testing/peers-contract.ts'
export { sessionStoreContract } from './testing/session-store-contract.ts'
