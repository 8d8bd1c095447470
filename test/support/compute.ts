// Blocks the event loop, for tests of stall detection.

/** Computes for at least this long, in milliseconds of wall time and of CPU time of the process, other threads included. */
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
