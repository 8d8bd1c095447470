// Counts the attacks of a test file by kind, for the table in docs/security-tests.md.
const counts = new Map<string, number>()

export const count = (kind: string, attacks = 1) => void counts.set(kind, (counts.get(kind) ?? 0) + attacks)

export function printCounts(): void {
  const lines = [...counts].map(([kind, number]) => `      ${kind}: ${number}`)
  process.stdout.write(`\n      attacks\n${lines.join('\n')}\n`)
  counts.clear()
}
