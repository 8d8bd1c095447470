// Starts and stops servers on one CPU and the load generator on another. All processes end when `signal` is aborted.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { inPath } from '../test/support/needs-program.ts'

export const CAN_PIN_CPUS = inPath('taskset') && availableParallelism() > 1

const START_TIMEOUT_MS = 20_000
const STOP_TIMEOUT_MS = 5_000

/** `separate`: a server and the load generator each have a CPU. `shared`: a server on the load generator's CPU. */
export type CpuPlacement = 'separate' | 'shared' | 'unpinned'

const CPU_OF = { server: '0', load: '1' }

interface Started {
  readonly child: ChildProcess
  /** Returns what the process has printed so far, to stdout and stderr. */
  readonly output: () => string
}

/** Starts a program on its CPU. taskset executes the program in its own process, so the process id is unchanged. */
function spawnProgram(
  role: keyof typeof CPU_OF,
  command: readonly string[],
  signal: AbortSignal,
  placement: CpuPlacement = 'separate',
): Started {
  const cpu = CPU_OF[placement === 'shared' ? 'load' : role]
  const [program = '', ...args] =
    CAN_PIN_CPUS && placement !== 'unpinned' ? ['taskset', '-c', cpu, ...command] : command
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

/** Runs a client of bench/clients until it exits and returns the JSON result that it prints last. */
export async function runClient<Result>(
  file: string,
  argument: string,
  signal: AbortSignal,
  placement?: CpuPlacement,
): Promise<Result> {
  const program = fileURLToPath(new URL(`clients/${file}`, import.meta.url))
  const command = [process.execPath, '--import', 'tsx', program, argument]
  const { child, output } = spawnProgram('load', command, signal, placement)
  const [code] = await once(child, 'close')
  const start = output().lastIndexOf('\n{')
  if (code !== 0 || start === -1) throw new Error(`${file} exited with ${code}: ${output().slice(-1000)}`)
  return JSON.parse(output().slice(start))
}

export interface RunningServer {
  readonly pid: number
  /** URL of the MCP endpoint. */
  readonly url: string
  /** Sends SIGTERM, and SIGKILL after 5 s. Resolves when the process has ended. */
  stop(): Promise<void>
}

/** Starts a server and waits until it prints its URL. */
export async function startServer(
  command: readonly string[],
  signal: AbortSignal,
  placement?: CpuPlacement,
  nodePath = process.execPath,
): Promise<RunningServer> {
  const { child, output } = spawnProgram('server', [nodePath, ...command], signal, placement)
  const ended = new Promise<void>(resolve => child.once('close', () => resolve()))
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
    const force = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
    await ended
    clearTimeout(force)
  }
  try {
    const origin = await new Promise<string>((resolve, reject) => {
      const fail = (reason: string) => reject(new Error(`${reason}; output: ${output().slice(-2000)}`))
      const timeout = setTimeout(() => fail('the server did not listen in time'), START_TIMEOUT_MS)
      child.on('error', reject)
      child.once('close', code => fail(`the server exited with ${code}`))
      child.stdout?.on('data', () => {
        const [, printed] = /listening on (http:\/\/[\d.:]+)/.exec(output()) ?? []
        if (printed === undefined) return
        clearTimeout(timeout)
        resolve(printed)
      })
    })
    return { pid: child.pid ?? 0, url: `${origin}/mcp`, stop }
  } catch (cause) {
    await stop()
    throw new Error(`${command.join(' ')}: ${cause instanceof Error ? cause.message : cause}`, { cause })
  }
}
