// The person at the terminal: lines for them go to stderr, so that stdout is for results alone; what they type is read.
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { printable, printableLines } from '../../client/printable.ts'
import { knownSecrets } from '../known-secrets.ts'

/** True where somebody can be asked. */
export const hasPerson = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true

/** One line. What servers say in it moves no cursor. */
export const say = (line: string): void => void process.stderr.write(`${printable(knownSecrets.scrub(line))}\n`)

/** Text of a server for a terminal: its lines stay, what would steer the terminal is escaped. Elsewhere as it is. */
export const showable = (text: string): string => (process.stdout.isTTY ? printableLines(text) : text)

const silence = () => new Writable({ write: (_chunk, _encoding, done) => done() })

/**
 * Asks a question and reads one line; undefined at the end of the input. `hidden`: what is typed is not shown. Rejects
 * with the signal's reason.
 */
export function ask(
  question: string,
  { hidden = false, signal }: { readonly hidden?: boolean; readonly signal?: AbortSignal | undefined } = {},
): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const terminal = process.stdin.isTTY === true
    const lines = createInterface({ input: process.stdin, output: hidden ? silence() : process.stderr, terminal })
    // Only now is the terminal silent: what is typed at the question is not shown.
    if (hidden) process.stderr.write(question)
    else {
      lines.setPrompt(question)
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
      if (hidden || !terminal || line === undefined) process.stderr.write('\n')
      if (signal?.aborted) reject(signal.reason)
      else resolve(line)
    })
  })
}
