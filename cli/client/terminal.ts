// Prompts, progress and events on stderr, and Ctrl-C handling.
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import type { AuthEvent } from '../../client/events.ts'
import { printable, processText } from '../../client/text.ts'
import type { Progress } from '../../remote/index.ts'
import type { CommandContext } from '../context.ts'
import type { CommandOutput } from '../render.ts'
import { toFlag } from './flag-text.ts'

type Terminal = Pick<CommandContext, 'stdin' | 'stderr'>

export const isInteractive = ({ stdin, stderr }: Terminal): boolean => stdin.isTTY === true && stderr.isTTY === true

const MAX_PROMPT = 1_000

const createNullStream = () => new Writable({ write: (_chunk, _encoding, done) => done() })

/** Prompts for one line; undefined at the end of input. `hidden` disables echo. Rejects with the signal's reason. */
export function prompt(
  { stdin, stderr }: Terminal,
  question: string,
  { hidden = false, signal }: { readonly hidden?: boolean; readonly signal?: AbortSignal | undefined } = {},
): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const terminal = stdin.isTTY === true
    // Parts of a question can come from a server.
    const shown = printable(question, MAX_PROMPT)
    const lines = createInterface({ input: stdin, output: hidden ? createNullStream() : stderr, terminal })
    // Written after echo is off, so that no typed character is shown.
    if (hidden) stderr.write(shown)
    else {
      lines.setPrompt(shown)
      lines.prompt()
    }
    let line: string | undefined
    const abort = () => lines.close()
    signal?.addEventListener('abort', abort, { once: true })
    lines.once('line', text => {
      line = text
      lines.close()
    })
    // In raw mode the terminal sends no signal.
    lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
    lines.once('close', () => {
      signal?.removeEventListener('abort', abort)
      if (hidden || !terminal || line === undefined) stderr.write('\n')
      if (signal?.aborted) reject(signal.reason)
      else resolve(line)
    })
  })
}

const INTERRUPTED = 130

/**
 * Runs `work` with a signal that Ctrl-C or SIGTERM aborts. After an abort the command exits with the interruption exit code, and
 * the promise stays pending.
 */
export async function interruptible<T>(
  { process: events, stderr, exit }: CommandContext,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const interrupt = () => {
    if (controller.signal.aborted) exit(INTERRUPTED)
    controller.abort(new Error('interrupted'))
  }
  const signals = ['SIGINT', 'SIGTERM'] as const
  for (const signal of signals) events.on(signal, interrupt)
  try {
    return await work(controller.signal)
  } catch (error) {
    if (!controller.signal.aborted) throw error
    stderr.write('mcp-host: cancelled\n')
    exit(INTERRUPTED)
    return new Promise<never>(() => undefined)
  } finally {
    for (const signal of signals) events.off(signal, interrupt)
  }
}

export function describeProgress({ progress, total, message }: Progress): string {
  const part = total === undefined ? String(progress) : `${progress}/${total}`
  const percent = total === undefined || total <= 0 ? '' : ` (${Math.floor((progress / total) * 100)} %)`
  return printable([`${part}${percent}`, message].filter(Boolean).join('  '), 200)
}

export function createProgressLine(stream: CommandOutput) {
  let shown = false
  return {
    show(progress: Progress | string): void {
      const text = typeof progress === 'string' ? printable(progress, 200) : describeProgress(progress)
      if (!stream.isTTY) return void stream.write(`${text}\n`)
      stream.write(`\r\u001b[K${text.slice(0, Math.max(1, (stream.columns || 80) - 1))}`)
      shown = true
    },
    clear(): void {
      if (shown) stream.write('\r\u001b[K')
      shown = false
    },
  }
}

const scopesText = (scope: string | undefined) => (scope ? `, scopes ${scope}` : '')

export const step = ({ say }: Pick<CommandContext, 'say'>, label: string, text: string): void =>
  say(`${label.padEnd(22)}${text}`)

function describe(event: AuthEvent): readonly [label: string, text: string] | undefined {
  switch (event.type) {
    case 'resource-metadata-found':
      return ['protected by', event.resource === undefined ? 'no resource metadata (2025-03-26)' : event.url]
    case 'authorization-server-found':
      return ['authorization server', event.issuer]
    case 'several-authorization-servers':
      return ['note', `several authorization servers are listed; using the first: ${event.listed.join(', ')}`]
    case 'registered':
      return ['registered as', event.clientId]
    case 'registration-dropped':
      return ['registration', `${event.clientId} is no longer used: ${event.why}`]
    case 'authorization-started':
      return ['login', `at ${event.issuer}${scopesText(event.scope)}`]
    case 'login-waiting':
      return ['login', `waiting for ${processText(event.pid)}: complete its login, or end that process to log in here`]
    case 'refresh-failed':
      return ['renewal', `failed: ${event.code}`]
    case 'step-up':
      return ['more scopes', `the server requires ${event.scope}`]
    case 'tolerated':
      return ['note', `${event.what} (${toFlag(event.option)})`]
    case 'token-obtained':
      return ['token', `by ${event.grant}${scopesText(event.scope)}`]
    default:
      return undefined
  }
}

export const createLoginReporter =
  (context: CommandContext) =>
  (event: AuthEvent): void => {
    const row = describe(event)
    if (row) step(context, ...row)
  }
