// The package entry `mcp-host/store`: the two primitives that adapters of databases implement.
export { applySteps, type PartitionState, type RecordState, scoreAt } from './store/apply-steps.ts'
export type { Bus } from './store/bus.ts'
export { createMemoryBus } from './store/memory-bus.ts'
export { createMemoryStore, type MemoryStoreSettings } from './store/memory-store.ts'
export type {
  Fields,
  Found,
  LogPage,
  LogQuery,
  LogStep,
  Members,
  Outcome,
  Query,
  ReadAnswers,
  RecordQuery,
  RecordStep,
  Score,
  SetQuery,
  SetStep,
  Step,
  Store,
  StoredRecord,
} from './store/store.ts'
