// Runs the checks of store contracts as tests.
import type { Check } from '../../core/testing/contract.ts'
import { concurrentIt } from './concurrent-it.ts'

interface Options {
  readonly before?: Mocha.Func
  readonly after?: Mocha.Func
  /** Maximum number of checks at the same time. Most checks wait for an expiry or for the disk. Default: 1. */
  readonly atOnce?: number
  /** Registers the checks, in place of `atOnce`. With a shared `concurrentIt`, the checks of several suites run at the same time. */
  readonly register?: (name: string, test: () => Promise<void>) => void
}

/** One suite for each store, named by its key. */
export function describeContracts(
  contracts: Readonly<Record<string, readonly Check[]>>,
  { atOnce = 1, register, ...options }: Options = {},
): void {
  for (const [subject, checks] of Object.entries(contracts)) {
    describe(subject, () => {
      if (options.before) before(options.before)
      if (options.after) after(options.after)
      const check = register ?? (atOnce > 1 ? concurrentIt({ atOnce }) : it)
      for (const { name, run } of checks) check(name, run)
    })
  }
}
