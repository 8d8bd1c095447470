// Runs the tests of a suite concurrently: for tests that mostly wait. Mocha reports each one separately.

type Test = () => Promise<unknown>
type Register = (name: string, test: Test) => unknown

export interface ConcurrentItSettings {
  /** Maximum number of concurrent tests, started in order. Default: all. */
  readonly atOnce?: number
  /** Default: the `it` of Mocha. */
  readonly register?: Register
}

/** Starts this many, and another one whenever one ends. Returns the promise of each. */
function startAll(tests: readonly Test[], atOnce: number): Map<Test, Promise<unknown>> {
  const started = new Map<Test, Promise<unknown>>()
  const ends: Promise<unknown>[] = []
  for (const test of tests) {
    // This one starts when enough of the earlier ones have ended.
    const free = ends.length < atOnce ? Promise.resolve() : whenEnded(ends, ends.length - atOnce + 1)
    const running = free.then(test)
    started.set(test, running)
    // The test that awaits it reports the failure.
    ends.push(running.catch(() => undefined))
  }
  return started
}

/** Resolves when this many of these have ended. */
function whenEnded(ends: readonly Promise<unknown>[], count: number): Promise<void> {
  let ended = 0
  return new Promise(resolve => {
    for (const end of ends) void end.then(() => ++ended === count && resolve())
  })
}

/**
 * Returns an `it` whose tests run concurrently within one suite. Tests excluded by `--grep` run, too. A retry (`--retries`) runs one
 * test alone. Clean up with `after`, not `afterEach`: the hook runs after the last test.
 */
export function concurrentIt(settings: ConcurrentItSettings = {}): (name: string, test: Test) => void {
  const { atOnce = Number.POSITIVE_INFINITY, register = it } = settings
  const tests: Test[] = []
  let started: Map<Test, Promise<unknown>> | undefined
  return (name, test) => {
    tests.push(test)
    register(name, async () => {
      started ??= startAll(tests, atOnce)
      const running = started.get(test) ?? test()
      started.delete(test)
      await running
    })
  }
}
