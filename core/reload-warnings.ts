// What each version of a config is warned of: a reload tells what the version before was not told already.
// For core/create-host.ts, which builds the versions, and core/reload.ts.
import { inspect } from 'node:util'
import type { Logger } from './kernel/log.ts'

interface Warning {
  readonly fields: object
  readonly message: string | undefined
}

/** By what they say; one whose line alone has moved is the same. */
export type Warnings = ReadonlyMap<string, Warning>

export interface WarningsKept {
  /** For what builds the host: what it is told goes on to `log`, if there is one. */
  readonly log: Logger
  /** From now on nothing is kept any more. */
  end(): Warnings
}

function keyOf({ fields, message }: Warning): string {
  const { line: _, ...said } = fields as { line?: unknown }
  return inspect([message, said], { depth: 6, breakLength: Infinity })
}

export function keepWarnings(log?: Logger): WarningsKept {
  const kept = new Map<string, Warning>()
  let isOpen = true

  const keeping = (bindings: object, to: Logger | undefined): Logger => ({
    debug: (fields, message) => to?.debug(fields, message),
    info: (fields, message) => to?.info(fields, message),
    warn(fields, message) {
      if (isOpen) {
        const warning = { fields: { ...bindings, ...fields }, message }
        kept.set(keyOf(warning), warning)
      }
      to?.warn(fields, message)
    },
    error: (fields, message) => to?.error(fields, message),
    child: more => keeping({ ...bindings, ...more }, to?.child(more)),
  })

  return {
    log: keeping({}, log),
    end() {
      isOpen = false
      return kept
    },
  }
}

/** Logs what `after` has and `before` has not. */
export function tellNew(before: Warnings, after: Warnings, log: Pick<Logger, 'warn'>): void {
  for (const [key, { fields, message }] of after) if (!before.has(key)) log.warn(fields, message)
}
