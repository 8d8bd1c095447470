// Counts by kind of attack, and the faults found, each with the round that reproduces it.

export interface Counts {
  rounds: number
  /** Requests that were sent whole, or as whole as the attack wants them. */
  sent: number
  /** Answers by class; `refused` is 503 with Retry-After, `limited` 429. */
  ok: number
  redirected: number
  clientError: number
  limited: number
  refused: number
  serverError: number
  /** Answers that are no HTTP, or broke off. */
  broken: number
}

export const createCounts = (): Counts => ({
  rounds: 0,
  sent: 0,
  ok: 0,
  redirected: 0,
  clientError: 0,
  limited: 0,
  refused: 0,
  serverError: 0,
  broken: 0,
})

/** Each is one line of the verdicts, and must be nothing. */
export const FAULT_KINDS = {
  crash: 'crashes',
  serverError: 'answers 5xx (503 with Retry-After is counted apart)',
  internal: 'answers -32603 "Internal error"',
  secret: 'answers that hold what their reader may not see',
  malformed: 'answers that are no JSON-RPC, split headers, stacks',
  unanswered: 'requests that were not answered in time',
  stall: 'event-loop stalls over 300 ms',
  steady: 'wrong or missing answers of the steady client',
  errorLine: 'error lines in the log',
  attack: 'failures of the program itself',
} as const
export type FaultKind = keyof typeof FAULT_KINDS

export interface Fault {
  readonly kind: FaultKind
  readonly text: string
  /** The rounds to replay, `<kind>:<number>`. */
  readonly rounds: readonly string[]
  /** What was sent last, where one request did it. */
  readonly request?: string | undefined
}

/** Faults of one kind that are kept whole. */
const KEPT = 40

export class Tally {
  readonly kinds = new Map<string, Counts>()
  readonly faults: Fault[] = []
  readonly faultCounts = new Map<FaultKind, number>()
  readonly logLines = new Map<string, number>()

  of(kind: string): Counts {
    const counts = this.kinds.get(kind) ?? createCounts()
    this.kinds.set(kind, counts)
    return counts
  }

  fault(fault: Fault): void {
    const count = (this.faultCounts.get(fault.kind) ?? 0) + 1
    this.faultCounts.set(fault.kind, count)
    if (count <= KEPT) this.faults.push(fault)
  }

  count(kind: FaultKind): number {
    return this.faultCounts.get(kind) ?? 0
  }
}
