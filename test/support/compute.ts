// Holds the event loop, for tests of what is said of tools that do.

/** Computes for so long at least, milliseconds by the clock, and of this process, whose other threads count too. */
export function compute(ms: number): string {
  const before = process.cpuUsage()
  const start = performance.now()
  for (let used = 0; used < ms * 1_000 || performance.now() - start < ms; ) {
    for (let round = 0; round < 10_000; round++) Math.sqrt(round)
    const { user, system } = process.cpuUsage(before)
    used = user + system
  }
  return `computed ${ms} ms`
}
