// `mcp-host doctor`: asks a running server from outside what its clients would, and says how to mend what is wrong.
import { StartError } from '../core/index.ts'
import { examine } from './doctor/examine.ts'
import type { Finding } from './doctor/finding.ts'
import { readToken } from './explain.ts'
import type { VerbOptions } from './main.ts'

const SIGNS = { ok: 'ok   ', note: 'note ', wrong: 'WRONG' } as const

/** One line a finding, and its fix below. */
function describe({ check, level, text, fix }: Finding, width: number): string {
  const line = `${SIGNS[level]}  ${check.padEnd(width)}  ${text}`
  return fix === undefined ? line : `${line}\n${' '.repeat(width + 9)}fix: ${fix}`
}

/** Exits 1 when something is wrong. */
export async function doctor({ url, token: given, origin, json }: VerbOptions): Promise<void> {
  if (url === undefined || !/^https?:/.test(url) || !URL.canParse(url)) {
    throw new StartError('doctor needs --url, the http or https address that clients use', { exitCode: 2 })
  }
  const token = readToken(given)
  const findings = await examine(url, {
    ...(token !== undefined && { token }),
    ...(origin !== undefined && { origin }),
  })
  const healthy = findings.every(({ level }) => level !== 'wrong')
  if (json) console.log(JSON.stringify({ url, healthy, findings }, undefined, 2))
  else {
    const width = Math.max(...findings.map(({ check }) => check.length))
    console.log(findings.map(finding => describe(finding, width)).join('\n'))
  }
  if (!healthy) process.exitCode = 1
}
