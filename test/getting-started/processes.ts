// Starts programs, each in its own process group with a time limit, and ends them.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { delimiter, dirname } from 'node:path'

/** Programs use the Node.js of this process, without its loaders. */
const BASE = {
  ...process.env,
  PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH']}`,
  NODE_OPTIONS: '',
}

export interface Ended {
  readonly code: number | null
  /** The output of both streams, in order of arrival. */
  readonly text: string
}

export interface Served {
  /** Resolves with the match once the output matches. */
  printed(words: RegExp): Promise<RegExpExecArray>
  /** Ends the program as Ctrl-C does, and waits for its end. */
  stop(): Promise<void>
}

const running = new Set<ChildProcess>()

/** Ends the whole group: npm and npx start shells, which start programs. */
function signal({ pid }: ChildProcess, name: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, name)
  } catch {
    // The group has ended.
  }
}

export function killAll(): void {
  for (const child of running) signal(child, 'SIGKILL')
}

function start(folder: string, command: readonly string[], env: NodeJS.ProcessEnv) {
  const [program = '', ...args] = command
  const stdio = ['ignore', 'pipe', 'pipe'] as const
  const child = spawn(program, args, { cwd: folder, env: { ...BASE, ...env }, detached: true, stdio: [...stdio] })
  running.add(child)
  const output = { text: '' }
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      output.text += chunk
      child.emit('output')
    })
  }
  const ended = once(child, 'close').then(([code]): Ended => {
    running.delete(child)
    return { code, text: output.text }
  })
  return { child, output, ended }
}

/** Runs a program to its end. Resolves for any exit code. */
export const tryRun = (folder: string, command: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> =>
  start(folder, command, env).ended

/** Runs a program to its end. Returns its output, and rejects if it failed. */
export async function run(folder: string, command: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const { code, text } = await tryRun(folder, command, env)
  if (code === 0) return text
  throw new Error(`${command.join(' ')} ended with ${code}:\n${text}`)
}

export function serve(folder: string, command: readonly string[], env: NodeJS.ProcessEnv = {}): Served {
  const { child, output, ended } = start(folder, command, env)
  return {
    async printed(words) {
      for (;;) {
        const match = words.exec(output.text)
        if (match) return match
        const end = await Promise.race([once(child, 'output'), ended])
        if (!Array.isArray(end))
          throw new Error(`${command.join(' ')} ended with ${end.code} without ${words}:\n${end.text}`)
      }
    },
    async stop() {
      signal(child, 'SIGINT')
      await ended
    },
  }
}
