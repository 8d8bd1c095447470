// What a verb prints that runs in the test's own process.

/** All lines of console.log while `work` runs; what else of the process prints meanwhile is among them. */
export async function printedBy(work: () => Promise<unknown>): Promise<string> {
  const { log } = console
  const lines: string[] = []
  console.log = (...words: unknown[]) => void lines.push(words.map(String).join(' '))
  try {
    await work()
    return lines.join('\n')
  } finally {
    console.log = log
  }
}
