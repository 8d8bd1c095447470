// Runs the checks of store contracts as tests.
import type { Check } from '../../core/testing.ts'

interface Hooks {
  readonly before?: Mocha.Func
  readonly after?: Mocha.Func
}

/** One suite for each store, named by its key. */
export function describeContracts(contracts: Readonly<Record<string, readonly Check[]>>, hooks: Hooks = {}): void {
  for (const [subject, checks] of Object.entries(contracts)) {
    describe(subject, () => {
      if (hooks.before) before(hooks.before)
      if (hooks.after) after(hooks.after)
      for (const { name, run } of checks) it(name, run)
    })
  }
}
