// The config's `sessions` with its defaults filled in. From core/config/resolve-settings.ts to whoever keeps to them.

/** How many sessions there may be, and for how long. */
export interface SessionBounds {
  /** Milliseconds. */
  readonly idleTimeout: number
  readonly maxIdle: number
  /** Undefined: no bound. */
  readonly maxPerOwner: number | undefined
  /** Requests that run at once, of a session and of its owner. */
  readonly maxCallsPerSession: number
  readonly maxCallsPerOwner: number
}
