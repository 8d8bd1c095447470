// Tests that wait more than they work, each with servers of its own: they run together, and each is told of as any other.

type Test = () => Promise<unknown>
type Register = (name: string, test: Test) => unknown

export interface SideBySideSettings {
  /** How many run at a time, in their order. Default: all. */
  readonly atOnce?: number
  /** Default: the `it` of Mocha. */
  readonly register?: Register
}

/** Begins so many, and another one whenever one ends. Each promise is that of its test. */
function beginAll(tests: readonly Test[], atOnce: number): Map<Test, Promise<unknown>> {
  const begun = new Map<Test, Promise<unknown>>()
  const ends: Promise<unknown>[] = []
  for (const test of tests) {
    // As many run as may: this one begins when all but so many of those before have ended.
    const free = ends.length < atOnce ? Promise.resolve() : whenEnded(ends, ends.length - atOnce + 1)
    const running = free.then(test)
    begun.set(test, running)
    // Whoever awaits the test hears of its failure.
    ends.push(running.catch(() => undefined))
  }
  return begun
}

/** Resolves when so many of these have ended. */
function whenEnded(ends: readonly Promise<unknown>[], count: number): Promise<void> {
  let ended = 0
  return new Promise(resolve => {
    for (const end of ends) void end.then(() => ++ended === count && resolve())
  })
}

/**
 * Returns an `it` for the tests of one suite, which then run side by side; those that `--grep` leaves out begin, too. A second
 * try (`--retries`) is of one test alone. What they start, a hook ends after the last of them: `after`, not `afterEach`.
 */
export function sideBySide(settings: SideBySideSettings = {}): (name: string, test: Test) => void {
  const { atOnce = Number.POSITIVE_INFINITY, register = it } = settings
  const tests: Test[] = []
  let begun: Map<Test, Promise<unknown>> | undefined
  return (name, test) => {
    tests.push(test)
    register(name, async () => {
      begun ??= beginAll(tests, atOnce)
      const running = begun.get(test) ?? test()
      begun.delete(test)
      await running
    })
  }
}
