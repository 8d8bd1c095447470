// Limits the lines for refused anonymous requests: after the first of a period, one line with counts for each address.

import { addressKey } from '../../core/auth.ts'
import type { CallRecord } from '../../core/index.ts'

/** Milliseconds. */
const PERIOD = 60_000
/** Full lines per address, and for all. */
const MOST_OF_ONE = 10
const MOST_OF_ALL = 200
/** Distinct addresses; others are counted together. */
const MOST_ADDRESSES = 100
const OTHERS = '_OTHER'
/** One machine usually has a whole /64 network. */
const NETWORK_BITS = 64

export interface AnonymousRefusals {
  count(record: CallRecord): boolean
  close(): void
}

interface Tally {
  full: number
  counted: number
  first: number
  last: number
  /** By plugin and error kind, such as `auth-jwt unauthorized`. */
  readonly causes: Map<string, number>
}

const isAnonymous = ({ call, outcome, user }: CallRecord): boolean =>
  call === undefined && outcome === 'refused' && user === undefined

const iso = (at: number) => new Date(at).toISOString()

function lineOf(ip: string, { counted, first, last, causes }: Tally): string {
  const errors = Object.fromEntries(causes)
  const span = { count: counted, from: iso(first), until: iso(last) }
  return JSON.stringify({ time: iso(Date.now()), event: 'refusals', decision: 'refused', ip, ...span, errors })
}

export function createAnonymousRefusals(push: (fields: string) => void): AnonymousRefusals {
  let tallies = new Map<string, Tally>()
  let full = 0
  let period: NodeJS.Timeout | undefined

  function tell() {
    clearTimeout(period)
    period = undefined
    const told = tallies
    tallies = new Map()
    full = 0
    for (const [ip, tally] of told) if (tally.counted > 0) push(lineOf(ip, tally))
  }

  function tallyOf(ip: string): Tally {
    const group = addressKey(ip, NETWORK_BITS)
    const key = tallies.has(group) || tallies.size < MOST_ADDRESSES ? group : OTHERS
    const found = tallies.get(key) ?? { full: 0, counted: 0, first: 0, last: 0, causes: new Map() }
    tallies.set(key, found)
    return found
  }

  return {
    count(record) {
      if (!isAnonymous(record)) return false
      period ??= setTimeout(tell, PERIOD).unref()
      const tally = tallyOf(record.ip)
      if (tally.full < MOST_OF_ONE && full < MOST_OF_ALL) {
        tally.full++
        full++
        return false
      }
      if (tally.counted++ === 0) tally.first = record.at
      tally.last = record.at
      const cause = `${record.refusedBy ?? '-'} ${record.error?.kind ?? '-'}`
      tally.causes.set(cause, (tally.causes.get(cause) ?? 0) + 1)
      return true
    },
    close: tell,
  }
}
