// `mcp-host start --workers` as an operator runs it, in a process group of its own, so that all of it can be killed at once.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type BundledFile, bundledFile } from '../../support/compiled.ts'
import { eventually } from '../../support/eventually.ts'
import { isAlive } from '../../support/is-alive.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
/** Milliseconds until all workers must serve. */
const START_LIMIT = 120_000
/** How much of what it printed is kept, characters. */
const KEPT = 200_000

export interface CrewSettings {
  /** A path from the repository's root. */
  readonly config: BundledFile
  /** Undefined: one process, without a primary. */
  readonly workers?: number
  readonly port: number
  readonly env: Readonly<Record<string, string>>
}

export interface WorkersProcess {
  readonly pid: number
  /** Without a trailing slash. */
  readonly url: string
  /** Process ids of those that serve now. */
  readonly serving: ReadonlySet<number>
  /** What it printed last, both streams. */
  readonly output: string
  /** SIGKILL to the primary alone; its workers hear of it. */
  killPrimary(): Promise<void>
  /** SIGKILL to all of it; resolves when nobody is left. */
  kill(): Promise<void>
  /** SIGTERM; the exit code. */
  stop(): Promise<number | null>
}

const running = new Set<ChildProcess>()

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // Nobody is left.
  }
}

process.once('exit', () => {
  for (const child of running) killGroup(child)
})

/** Reads who serves off the lines that the primary logs. */
function followWorkers(serving: Set<number>) {
  let unread = ''
  return (text: string) => {
    const lines = `${unread}${text}`.split('\n')
    unread = lines.pop() ?? ''
    for (const line of lines) {
      const [, pids] = /^\d+ workers?: pid (.+)$/.exec(line) ?? []
      for (const pid of pids?.split(', ') ?? []) serving.add(Number(pid))
      const [, worker] = /"worker":(\d+)/.exec(line) ?? []
      if (line.includes('"msg":"a worker serves"')) serving.add(Number(worker))
      if (line.includes('"msg":"a worker ended')) serving.delete(Number(worker))
    }
  }
}

/** Resolves when all of it serves; rejects with what it printed where it does not. */
export async function startWorkersProcess({ config, workers, port, env }: CrewSettings): Promise<WorkersProcess> {
  const more = workers === undefined ? [] : ['--workers', String(workers)]
  const child = spawn(
    process.execPath,
    [bundledFile('cli/bin.ts'), 'start', '--config', bundledFile(config), ...more],
    {
      cwd: ROOT,
      env: { ...process.env, ...env, PORT: String(port) },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  running.add(child)
  const ended = once(child, 'exit').then(() => void running.delete(child))
  const serving = new Set<number>()
  const ready = workers === undefined ? /^listening on http:/m : new RegExp(`^${workers} workers?: pid .+$`, 'm')
  let output = ''
  await new Promise<void>((resolve, reject) => {
    const fail = (what: string) => reject(new Error(`a crew ${what}:\n${output}`))
    const late = setTimeout(fail, START_LIMIT, 'does not serve')
    for (const stream of [child.stdout, child.stderr]) {
      const follow = followWorkers(serving)
      stream.setEncoding('utf8').on('data', (text: string) => {
        output = (output + text).slice(-KEPT)
        follow(text)
        if (!ready.test(output)) return
        clearTimeout(late)
        resolve()
      })
    }
    child.once('exit', code => fail(`ended with ${code ?? child.signalCode}`))
  }).catch(error => {
    killGroup(child)
    throw error
  })
  return {
    pid: child.pid ?? 0,
    url: `http://127.0.0.1:${port}`,
    serving,
    get output() {
      return output
    },
    async killPrimary() {
      child.kill('SIGKILL')
      await ended
    },
    async kill() {
      const all = [...serving]
      killGroup(child)
      await ended
      await eventually('every worker has ended', () => !all.some(isAlive))
    },
    async stop() {
      child.kill('SIGTERM')
      await ended
      return child.exitCode
    },
  }
}
