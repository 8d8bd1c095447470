// The person at the terminal: lines for them go to stderr, so that stdout is for results alone; what they type is read.
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { printable } from '../../client/text.ts'
import type { CommandContext } from '../context.ts'

type Terminal = Pick<CommandContext, 'stdin' | 'stderr'>

/** True where somebody can be asked. */
export const hasPerson = ({ stdin, stderr }: Terminal): boolean => stdin.isTTY === true && stderr.isTTY === true

/** Characters. */
const MAX_QUESTION = 1_000

const silence = () => new Writable({ write: (_chunk, _encoding, done) => done() })

/**
 * Asks a question and reads one line; undefined at the end of the input. `hidden`: what is typed is not shown. Rejects
 * with the signal's reason.
 */
export function ask(
  { stdin, stderr }: Terminal,
  question: string,
  { hidden = false, signal }: { readonly hidden?: boolean; readonly signal?: AbortSignal | undefined } = {},
): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const terminal = stdin.isTTY === true
    // Parts of a question may come from a server.
    const shown = printable(question, MAX_QUESTION)
    const lines = createInterface({ input: stdin, output: hidden ? silence() : stderr, terminal })
    // Only now is the terminal silent: what is typed at the question is not shown.
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
    // In raw mode the terminal sends no signal by itself.
    lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
    lines.once('close', () => {
      signal?.removeEventListener('abort', abort)
      if (hidden || !terminal || line === undefined) stderr.write('\n')
      if (signal?.aborted) reject(signal.reason)
      else resolve(line)
    })
  })
}
