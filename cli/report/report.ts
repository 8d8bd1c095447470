// The result of `mcp-host report`, as `--json` prints it. Texts are safe for a terminal.
import type { Count } from './counts.ts'

/** Of one tool. Times in milliseconds; undefined where nothing says how long it took. */
export interface ToolRow {
  readonly tool: string
  readonly route: string | undefined
  readonly calls: number
  readonly errors: number
  readonly p50: number | undefined
  readonly p95: number | undefined
  readonly p99: number | undefined
}

export interface CauseRow {
  readonly by: string | undefined
  readonly error: string
  readonly reason: string | undefined
  readonly count: number
}

/** Times as ISO 8601; undefined where the source has no times. */
export interface Use {
  readonly calls: number
  readonly first: string | undefined
  readonly last: string | undefined
}

/** `used`: somebody did. `unused`: nobody. `untold`: what was read does not say it. */
export type Verdict = 'used' | 'unused' | 'untold'

export interface FeatureRow extends Use {
  readonly feature: string
  readonly verdict: Verdict
  readonly clients: number
}

export interface ClientRow extends Use {
  readonly client: string
  readonly revision: string
  readonly features: ReadonlyArray<Use & { readonly feature: string }>
}

export interface Legacy {
  readonly features: readonly FeatureRow[]
  readonly clients: readonly ClientRow[]
  readonly notListed: number
  readonly advice: readonly string[]
}

export interface Report {
  /** The access log was sampled: counts of what went well, and percentiles, are estimates, and who is rare may be missing. */
  readonly estimated: boolean
  readonly from: string | undefined
  readonly until: string | undefined
  readonly calls: number
  /** Calls that failed, were refused, or whose tool failed. */
  readonly errors: number
  /** `errors` of `calls`, 0 to 1. */
  readonly errorRatio: number
  /** HTTP requests that were refused before they became calls. */
  readonly requests: number
  readonly outcomes: Readonly<Record<string, number>>
  readonly busiest: readonly ToolRow[]
  readonly slowest: readonly ToolRow[]
  readonly causes: readonly CauseRow[]
  readonly causesNotListed: number
  /** Undefined if the log was sampled, like `clients` and `sessions`. */
  readonly users: Count | undefined
  readonly clients: Count | undefined
  readonly sessions: Count | undefined
  readonly legacy: Legacy
  readonly lines: LineCounts
  readonly notes: readonly string[]
}

export interface LineCounts {
  readonly counted: number
  readonly outside: number
  readonly future: number
  /** Torn, or of another program. */
  readonly skipped: number
}
