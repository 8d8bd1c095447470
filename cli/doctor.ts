// `mcp-host doctor`: asks a running server from outside what its clients would, and says how to mend what is wrong.
import { printable } from '../client/printable.ts'
import { StartError } from '../core/http/errors.ts'
import type { Finding } from './doctor/finding.ts'
import { jsonText } from './json-text.ts'
import { knownSecrets } from './known-secrets.ts'
import { readToken } from './read-token.ts'
import { defineVerb, type VerbValues } from './verb.ts'

const SIGNS = { ok: 'ok   ', note: 'note ', wrong: 'WRONG' } as const

const OPTIONS = {
  url: { type: 'string', value: '<url>', help: 'the URL, as an option' },
  token: { type: 'string', value: '<token>', help: 'a token to try; @file reads it from a file, - from stdin' },
  origin: { type: 'string', value: '<origin>', help: 'of a page that shall be able to call' },
  json: { type: 'boolean', help: 'print the findings as JSON' },
} as const

/** One line a finding, and its fix below. What servers say in it moves no cursor. */
function describe({ check, level, text, fix }: Finding, width: number): string {
  const line = printable(`${SIGNS[level]}  ${check.padEnd(width)}  ${text}`)
  return fix === undefined ? line : `${line}\n${' '.repeat(width + 9)}fix: ${printable(fix)}`
}

/** What a server wrote back of the token that it was tried with is not shown. */
const scrubFinding = (finding: Finding): Finding => ({
  ...finding,
  text: knownSecrets.scrub(finding.text),
  ...(finding.fix !== undefined && { fix: knownSecrets.scrub(finding.fix) }),
})

/** The server as its operator sees it, then as a client does. */
async function examineAll(url: string, options: { token?: string; origin?: string }): Promise<Finding[]> {
  const [{ examine }, { examineAsClient }] = await Promise.all([
    import('./doctor/examine.ts'),
    import('./doctor/client-view.ts'),
  ])
  return [...(await examine(url, options)), ...(await examineAsClient(url))]
}

/** Exits 1 when something is wrong. */
async function doctor(values: VerbValues<typeof OPTIONS>, [positional]: readonly string[]): Promise<void> {
  const { url: option, origin, json } = values
  const url = positional ?? option
  if (url === undefined || !/^https?:/.test(url) || !URL.canParse(url)) {
    throw new StartError('doctor needs a URL, the http or https address that clients use', { exitCode: 2 })
  }
  if (positional !== undefined && option !== undefined) {
    throw new StartError('doctor takes one URL: leave --url out', { exitCode: 2 })
  }
  const token = readToken(values.token)
  const found = await examineAll(url, {
    ...(token !== undefined && { token }),
    ...(origin !== undefined && { origin }),
  })
  const findings = found.map(scrubFinding)
  const healthy = findings.every(({ level }) => level !== 'wrong')
  if (json) console.log(jsonText({ url, healthy, findings }))
  else {
    const width = Math.max(...findings.map(({ check }) => check.length))
    console.log(findings.map(finding => describe(finding, width)).join('\n'))
  }
  if (!healthy) process.exitCode = 1
}

export const doctorVerb = defineVerb({
  summary: 'ask a running server from outside what its clients would; exits 1 when something is wrong',
  positionals: ['[URL]'],
  options: OPTIONS,
  run: doctor,
})
