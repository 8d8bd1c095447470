// Tests that wait more than they work, each with servers of its own: all begin with the first, and each is told of as any other.

type Test = () => Promise<unknown>
type Register = (name: string, test: Test) => unknown

/** A promise whose failure waits for whoever awaits it. */
function begin(test: Test): Promise<unknown> {
  const running = test()
  running.catch(() => undefined)
  return running
}

/**
 * Returns an `it` for the tests of one suite, which then run side by side; those that `--grep` leaves out begin, too. A second
 * try (`--retries`) is of one test alone. What they start, a hook ends after the last of them: `after`, not `afterEach`.
 */
export function sideBySide(register: Register = it): (name: string, test: Test) => void {
  const tests: Test[] = []
  const begun = new Map<Test, Promise<unknown>>()
  let began = false
  return (name, test) => {
    tests.push(test)
    register(name, async () => {
      if (!began) for (const each of tests) begun.set(each, begin(each))
      began = true
      const running = begun.get(test) ?? test()
      begun.delete(test)
      await running
    })
  }
}
