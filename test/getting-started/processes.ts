// Starts programs, each in its own process group with a time limit, and ends them.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { delimiter, dirname } from 'node:path'

/** Programs find the Node that runs this, and no loader of ours. */
const BASE = {
  ...process.env,
  PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH']}`,
  NODE_OPTIONS: '',
}

export interface Ended {
  readonly code: number | null
  /** What it wrote to either stream, in the order in which it came. */
  readonly text: string
}

export interface Served {
  /** Resolves with the match once it wrote what fits. */
  printed(words: RegExp): Promise<RegExpExecArray>
  /** Ends it as Ctrl-C does, and waits. */
  stop(): Promise<void>
}

const running = new Set<ChildProcess>()

/** Ends the whole group: npm and npx start shells, which start programs. */
function signal({ pid }: ChildProcess, name: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, name)
  } catch {
    // It is over.
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
  const said = { text: '' }
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      said.text += chunk
      child.emit('said')
    })
  }
  const ended = once(child, 'close').then(([code]): Ended => {
    running.delete(child)
    return { code, text: said.text }
  })
  return { child, said, ended }
}

/** Runs it to its end, whatever that is. */
export const tryRun = (folder: string, command: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> =>
  start(folder, command, env).ended

/** The same, which must end well; resolves with what it wrote. */
export async function run(folder: string, command: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const { code, text } = await tryRun(folder, command, env)
  if (code === 0) return text
  throw new Error(`${command.join(' ')} ended with ${code}:\n${text}`)
}

export function serve(folder: string, command: readonly string[], env: NodeJS.ProcessEnv = {}): Served {
  const { child, said, ended } = start(folder, command, env)
  return {
    async printed(words) {
      for (;;) {
        const match = words.exec(said.text)
        if (match) return match
        const end = await Promise.race([once(child, 'said'), ended])
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
