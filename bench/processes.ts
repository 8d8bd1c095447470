// Starting and ending processes: servers on one core, the load on the other. All of them end with `signal`.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import { availableParallelism } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

function isOnPath(program: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some(folder => {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

export const CAN_PIN = isOnPath('taskset') && availableParallelism() > 1

const START_LIMIT_MS = 20_000
const STOP_LIMIT_MS = 5_000

/**
 * `own`: servers on one core and the load on another. `load`: a server on the core of the load. `all`: nothing is pinned, for
 * what is to use several.
 */
export type Cores = 'own' | 'load' | 'all'

const CPU_OF = { server: '0', load: '1' }

interface Started {
  readonly child: ChildProcess
  /** What it has printed so far, both streams. */
  readonly output: () => string
}

/** Starts a program on its core. taskset replaces itself by the program, so the process id is the program's. */
function start(
  role: keyof typeof CPU_OF,
  command: readonly string[],
  signal: AbortSignal,
  cores: Cores = 'own',
): Started {
  const core = CPU_OF[cores === 'load' ? 'load' : role]
  const [program = '', ...args] = CAN_PIN && cores !== 'all' ? ['taskset', '-c', core, ...command] : command
  const env = { ...process.env, NODE_ENV: 'production' }
  const child = spawn(program, args, { env, signal, killSignal: 'SIGKILL', stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  return { child, output: () => output }
}

/** Runs a client of bench/clients to its end, on the load's core, and returns what it found. */
export async function runClient<Found>(
  file: string,
  argument: string,
  signal: AbortSignal,
  cores?: Cores,
): Promise<Found> {
  const program = fileURLToPath(new URL(`clients/${file}`, import.meta.url))
  const output = await runLoad([process.execPath, '--import', 'tsx', program, argument], signal, cores)
  const found = output.lastIndexOf('\n{')
  if (found === -1) throw new Error(`${file} found nothing: ${output.slice(-1000)}`)
  return JSON.parse(output.slice(found))
}

/** Runs a program to its end on the load's core and returns what it printed. */
export async function runLoad(command: readonly string[], signal: AbortSignal, cores?: Cores): Promise<string> {
  const { child, output } = start('load', command, signal, cores)
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`${command[0]} ended with ${code}: ${output().slice(-1000)}`)
  return output()
}

export interface RunningServer {
  readonly pid: number
  /** Of its MCP endpoint. */
  readonly url: string
  /** Resolves when it has ended: asked to first, and made to after 5 s. */
  stop(): Promise<void>
}

/** Starts a server on its core and waits until it prints where it listens. `node`: the path of what runs it. */
export async function startServer(
  command: readonly string[],
  signal: AbortSignal,
  cores?: Cores,
  node = process.execPath,
): Promise<RunningServer> {
  const { child, output } = start('server', [node, ...command], signal, cores)
  const ended = new Promise<void>(resolve => child.once('close', () => resolve()))
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
    const force = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS)
    await ended
    clearTimeout(force)
  }
  try {
    const address = await new Promise<string>((resolve, reject) => {
      const fail = (what: string) => reject(new Error(`${what}; it printed: ${output().slice(-2000)}`))
      const limit = setTimeout(() => fail('it did not listen in time'), START_LIMIT_MS)
      child.on('error', reject)
      child.once('close', code => fail(`it ended with ${code}`))
      child.stdout?.on('data', () => {
        const [, found] = /listening on (http:\/\/[\d.:]+)/.exec(output()) ?? []
        if (found === undefined) return
        clearTimeout(limit)
        resolve(found)
      })
    })
    return { pid: child.pid ?? 0, url: `${address}/mcp`, stop }
  } catch (cause) {
    await stop()
    throw new Error(`${command.join(' ')}: ${cause instanceof Error ? cause.message : cause}`, { cause })
  }
}
