// `mcp-host top`: the live figures of a running host, from its metrics page.
import { setTimeout as pause } from 'node:timers/promises'
import { printableUrl } from '../client/printable.ts'
import { StartError } from '../core/http/errors.ts'
import type { CommandContext } from './context.ts'
import { askPage, readPageUrl } from './metrics-page/ask-page.ts'
import { fetchPage } from './metrics-page/fetch-page.ts'
import { readToken } from './read-token.ts'
import { figuresOf, isRestart } from './top/figures.ts'
import { frameLines } from './top/frame.ts'
import { watchFigures } from './top/watch-figures.ts'
import { defineVerb, type VerbValues } from './verb.ts'

const OPTIONS = {
  once: { type: 'boolean', help: 'print the figures of one interval; without a terminal it always does' },
  interval: { type: 'string', value: '<seconds>', help: 'between two looks, 1 to 60; default: 2' },
  token: { type: 'string', value: '<token>', help: 'for the metrics; @file reads it from a file, - from stdin' },
} as const

/** What shells expect of a program that was interrupted. */
const INTERRUPTED = 130
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

function readInterval(given = '2'): number {
  const seconds = Number(given)
  if (seconds >= 1 && seconds <= 60) return seconds * 1_000
  throw new StartError('--interval is a number of seconds, 1 to 60', { exitCode: 2 })
}

/** Returns the exit code. */
async function watchHere(
  url: string,
  token: string | undefined,
  interval: number,
  { stdin: input, stdout: output, process: events, secrets }: CommandContext,
): Promise<number> {
  const over = new AbortController()
  const end = () => over.abort()
  for (const signal of SIGNALS) events.on(signal, end)
  let ask = askPage
  try {
    await watchFigures({
      url,
      interval,
      async ask(signal) {
        const page = await ask({ url, token }, signal)
        // Where the metrics are else is asked for at the beginning alone.
        ask = fetchPage
        return page
      },
      input,
      output,
      secrets,
      signal: over.signal,
    })
  } finally {
    for (const signal of SIGNALS) events.off(signal, end)
  }
  return over.signal.aborted ? INTERRUPTED : 0
}

async function top(
  values: VerbValues<typeof OPTIONS>,
  [given = '']: readonly string[],
  context: CommandContext,
): Promise<number> {
  const { stdout, secrets } = context
  const interval = readInterval(values.interval)
  const url = readPageUrl(given)
  const token = await readToken(context, values.token)
  if (!values.once && stdout.isTTY) return watchHere(url, token, interval, context)
  const before = { page: await askPage({ url, token }), at: Date.now() }
  await pause(interval)
  const now = { page: await fetchPage({ url, token }), at: Date.now() }
  const figures = figuresOf(isRestart(before, now) ? undefined : before, now)
  const size = { columns: stdout.columns ?? 120, rows: 60 }
  const lines = frameLines({ url: printableUrl(url), figures, status: [], order: 'rate' }, size)
  context.print(secrets.scrub(lines.join('\n')))
  return 0
}

export const topVerb = defineVerb({
  summary: 'the live figures of a running host, from its metrics',
  positionals: ['URL'],
  options: OPTIONS,
  notes: 'URL is the metrics page, such as http://127.0.0.1:9464/metrics. Keys: q quits, p pauses, s sorts.',
  run: top,
})
