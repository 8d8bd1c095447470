// A grant store in memory, with its own limits and clock.
import { createMemoryStore } from '../../core/store.ts'
import { createGrantStore, type GrantStore } from '../../plugins/families/grant-store/index.ts'

const MIB = 1_048_576

export const createMemoryGrantStore = (
  { pending = 32 * MIB, granted = 128 * MIB } = {},
  now: () => number = Date.now,
): GrantStore =>
  createGrantStore(createMemoryStore({ now }), {
    pendingBytes: pending,
    granted: createMemoryStore({ now, maxBytes: granted, evicts: true }),
  })
