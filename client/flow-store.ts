// Stores pending authorization requests as JSON until their response arrives, possibly in another process.
import { LRUCache } from 'lru-cache'
import type { ClientIdentity, ServerInfo } from './parties.ts'

/** An authorization request (RFC 9700 §4.4). Contains secrets. */
export interface FlowRecord {
  readonly v: 1
  readonly state: string
  /** Published issuer; compared with `iss` of the response. */
  readonly issuer: string
  readonly issParameterSupported: boolean
  readonly codeVerifier: string
  readonly redirectUri: string
  readonly resource?: string | undefined
  readonly scope?: string | undefined
  readonly requestedScope?: string | undefined
  readonly client: ClientIdentity
  /** The server that redeems the code. */
  readonly server: ServerInfo
  readonly resourceMetadataUrl?: string | undefined
  readonly key: string
  /** Milliseconds since the epoch. */
  readonly createdAt: number
}

/** Stores records by state. Records are secrets and need the same protection as tokens. */
export interface FlowStore {
  save(state: string, record: FlowRecord): Promise<void> | void
  /** Returns and removes a record. */
  take(state: string): Promise<FlowRecord | undefined | null> | FlowRecord | undefined | null
}

export const FLOW_LIFETIME_MS = 600_000

const MAX_FLOWS = 1000

/** In-memory store: at most 1,000 records (oldest evicted first), ten minutes each. */
export function createMemoryFlowStore(now: () => number = Date.now): FlowStore {
  const lifetime = { ttl: FLOW_LIFETIME_MS, ttlResolution: 0, perf: { now } }
  const records = new LRUCache<string, FlowRecord>({ max: MAX_FLOWS, ...lifetime })
  return {
    save: (state, record) => void records.set(state, record),
    take(state) {
      const record = records.get(state)
      records.delete(state)
      return record
    },
  }
}
