// A node as a process, started by `mcp-host start`, which the test controls over IPC.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type BundledFile, bundledFile, exampleFile } from '../../support/compiled.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
/** Milliseconds until it must listen, and until it must have ended after SIGTERM. */
const START_LIMIT = 120_000
const STOP_LIMIT = 120_000
/** How much of what it printed is kept, characters. */
const KEPT = 200_000

export interface NodeSettings {
  /** A path from the repository's root. */
  readonly config: BundledFile | `examples/${string}`
  readonly port: number
  readonly env: Readonly<Record<string, string>>
  /** More of the command line. */
  readonly more?: readonly string[]
}

export interface NodeProcess {
  readonly pid: number
  /** Where it listens, without a trailing slash. */
  readonly url: string
  /** What it printed last, both streams. */
  readonly output: string
  /** To the config's module, which reads `process.on('message')`. */
  tell(message: object): void
  /** Messages of the config's module. */
  heard(listener: (message: unknown) => void): void
  /** SIGKILL; resolves when it has ended. */
  kill(): Promise<void>
  /** Sends SIGTERM, and SIGKILL after two minutes. Resolves to true if the process exited by itself. */
  stop(): Promise<boolean>
}

const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

const isExample = (config: NodeSettings['config']): config is `examples/${string}` => config.startsWith('examples/')
const hasEnded = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (hasEnded(child)) return
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}

const commandFor = (config: NodeSettings['config']): string[] => [
  bundledFile('cli/bin.ts'),
  'start',
  '--config',
  isExample(config) ? exampleFile(config) : bundledFile(config),
]

/** Resolves when it listens. Rejects, having ended it, where it does not. */
export async function startNode({ config, port, env, more = [] }: NodeSettings): Promise<NodeProcess> {
  const args = [...commandFor(config), ...more]
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { ...process.env, ...env, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  running.add(child)
  child.once('exit', () => running.delete(child))
  // A message to a node that is being killed may find its channel closed.
  child.on('error', () => undefined)
  let output = ''
  const url = new Promise<string>((resolve, reject) => {
    const read = (text: string) => {
      output = (output + text).slice(-KEPT)
      const [, found] = /listening on (http:\/\/127\.0\.0\.1:\d+)/.exec(output) ?? []
      if (found !== undefined) resolve(found)
    }
    child.stdout?.setEncoding('utf8').on('data', read)
    child.stderr?.setEncoding('utf8').on('data', read)
    child.once('exit', code => reject(new Error(`a node ended with ${code ?? child.signalCode}:\n${output}`)))
    setTimeout(() => reject(new Error(`a node does not listen:\n${output}`)), START_LIMIT).unref()
  })
  try {
    const listening = await url
    return {
      pid: child.pid ?? 0,
      url: listening,
      get output() {
        return output
      },
      tell: message => void (child.connected && child.send(message)),
      heard: listener => void child.on('message', listener),
      kill: () => end(child, 'SIGKILL'),
      async stop() {
        const timer = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT)
        await end(child, 'SIGTERM')
        clearTimeout(timer)
        return child.signalCode === null
      },
    }
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
}
