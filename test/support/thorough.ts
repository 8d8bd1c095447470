// Tests with many cases run a sample of them in `npm test`, and all of them in `npm run test:thorough`.
const isThorough = process.env['MCP_HOST_THOROUGH'] === '1'

/** How many cases a test runs: `all` of them when thorough, `sample` otherwise. */
export const caseCount = (all: number, sample: number): number => (isThorough ? all : sample)

/** The cases a test runs: all of them when thorough, otherwise `sample` of them chosen at random. */
export function selectCases<Case>(all: readonly Case[], sample: number): Case[] {
  if (isThorough) return [...all]
  const left = [...all]
  return Array.from(
    { length: Math.min(sample, all.length) },
    () => left.splice(Math.floor(Math.random() * left.length), 1)[0] as Case,
  )
}

/** Defines a test of floods or large messages, which only `npm run test:thorough` runs. */
export const itThorough = (title: string, test: Mocha.Func | Mocha.AsyncFunc): void => {
  if (isThorough) it(title, test as Mocha.AsyncFunc)
}
