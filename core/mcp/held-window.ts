// How long handlers held the event loop within the last seconds, and which: for the log and for readiness.

/** Seconds that are looked back on. */
export const WINDOW = 10
/** Handlers that one stall may be put down to. */
const MAX_SUSPECTS = 50

interface Second {
  /** Which one, since the process began. */
  at: number
  ms: number
  stalls: number
  readonly suspects: Map<string, number>
}

/** What was found in the window. */
export interface Held {
  /** Milliseconds, at most those of the window. */
  readonly ms: number
  readonly stalls: number
  /** Whose handlers were there for most of it: one, or several that nobody can tell apart; none where nothing was held. */
  readonly whose: readonly string[]
}

/** Stalls by the second in which they ended. Times are milliseconds of `performance`. */
export class HeldWindow {
  readonly #seconds: Second[] = Array.from({ length: WINDOW }, () => ({
    at: Number.NEGATIVE_INFINITY,
    ms: 0,
    stalls: 0,
    suspects: new Map(),
  }))

  /** `suspects`: who may have done it; one, where that is known. */
  note(now: number, ms: number, suspects: readonly string[]): void {
    const at = Math.floor(now / 1_000)
    const second = this.#seconds[at % WINDOW] as Second
    if (second.at !== at) {
      second.at = at
      second.ms = second.stalls = 0
      second.suspects.clear()
    }
    second.ms += ms
    second.stalls++
    for (const name of suspects.slice(0, MAX_SUSPECTS)) {
      second.suspects.set(name, (second.suspects.get(name) ?? 0) + ms)
    }
  }

  /** Who ran while others were stalled by something else is there less often than whoever stalled them. */
  held(now: number): Held {
    const first = Math.floor(now / 1_000) - WINDOW
    const recent = this.#seconds.filter(({ at }) => at > first)
    const sums = new Map<string, number>()
    for (const { suspects } of recent) {
      for (const [name, ms] of suspects) sums.set(name, (sums.get(name) ?? 0) + ms)
    }
    const most = Math.max(...sums.values())
    return {
      ms: Math.min(
        WINDOW * 1_000,
        recent.reduce((sum, { ms }) => sum + ms, 0),
      ),
      stalls: recent.reduce((sum, { stalls }) => sum + stalls, 0),
      whose: [...sums].filter(([, ms]) => ms === most).map(([name]) => name),
    }
  }
}
