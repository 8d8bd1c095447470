// Logins that are under way: what was sent to the authorization server, kept until its response comes back. A record is
// plain JSON, so that another process can finish what this one began.
import type { ClientIdentity, ServerInfo } from './parties.ts'

/** Everything about one authorization request, fixed before the browser leaves (RFC 9700 §4.4). Holds secrets. */
export interface FlowRecord {
  readonly v: 1
  readonly state: string
  /** As published by the server that was asked; the response's `iss` is compared with it. */
  readonly issuer: string
  readonly issParameterSupported: boolean
  readonly codeVerifier: string
  /** Byte for byte as sent. */
  readonly redirectUri: string
  readonly resource?: string | undefined
  readonly scope?: string | undefined
  readonly requestedScope?: string | undefined
  readonly client: ClientIdentity
  /** Where the code is redeemed, and nowhere else. */
  readonly server: ServerInfo
  readonly resourceMetadataUrl?: string | undefined
  readonly key: string
  /** Milliseconds since the epoch. */
  readonly createdAt: number
}

/** Keeps records by their state. Records are secrets: keep them as safe as tokens. */
export interface FlowStore {
  save(state: string, record: FlowRecord): Promise<void> | void
  /** Gives a record once: whoever takes it removes it. */
  take(state: string): Promise<FlowRecord | undefined | null> | FlowRecord | undefined | null
}

export const FLOW_LIFETIME_MS = 600_000

const MAX_FLOWS = 1000

/** A store of this process: 1000 records at most (the oldest goes first), ten minutes each. */
export function createMemoryFlowStore(now: () => number = Date.now): FlowStore {
  const records = new Map<string, { readonly record: FlowRecord; readonly until: number }>()

  function makeRoom(): void {
    for (const [state, { until }] of records) {
      if (until > now() && records.size < MAX_FLOWS) return
      records.delete(state)
    }
  }

  return {
    save(state, record) {
      records.delete(state)
      makeRoom()
      records.set(state, { record, until: now() + FLOW_LIFETIME_MS })
    },
    take(state) {
      const kept = records.get(state)
      records.delete(state)
      return kept && kept.until > now() ? kept.record : undefined
    },
  }
}
