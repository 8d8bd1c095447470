// The attacked host in a separate process, started by `mcp-host start`: held objects, blocked event loop turns and exit
// code.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { bundledFile } from '../support/compiled.ts'
import {
  type AttackedSettings,
  type Holding,
  type Question,
  type Report,
  SETTINGS,
  type Stall,
} from './attacked-settings.ts'

const ROOT = join(import.meta.dirname, '../..')
/** Megabytes of heap that the host may have: what holds without a bound ends it. */
const MAX_HEAP = 384
/** Milliseconds. A drain takes ten seconds at most, and as long again to clean up. */
const STOP_LIMIT = 30_000
const ASK_LIMIT = 20_000
/** Lines of its output that are kept. */
const KEPT_LINES = 60

export interface HostEvents {
  stalled(stall: Stall): void
  /** A line of its log. */
  logged(level: number, text: string, line: string): void
  /** It ended, and nobody told it to. */
  crashed(how: string, lastLines: string): void
}

export interface HostEnd {
  readonly code: number | string
  /** What ran when it was told to stop, as it says itself. */
  readonly running: number | undefined
}

export interface HostProcess {
  readonly url: string
  readonly alive: () => boolean
  /** Undefined where it does not answer any more. */
  holding(collect: boolean): Promise<Holding | undefined>
  longest(): Promise<number | undefined>
  stop(): Promise<HostEnd>
}

function readLog(child: ChildProcess, events: HostEvents, keep: (line: string) => void) {
  if (!child.stderr) return
  createInterface({ input: child.stderr }).on('line', line => {
    keep(line.slice(0, 500))
    const level = Number(/^\{"level":(\d+)/.exec(line)?.[1])
    const text = /"msg":"((?:[^"\\]|\\.)*)"\}$/.exec(line)?.[1]
    if (!Number.isNaN(level)) events.logged(level, text ?? line.slice(0, 100), line)
  })
}

export async function startHostProcess(settings: AttackedSettings, events: HostEvents, flags: readonly string[] = []) {
  const args = [
    ...flags,
    '--expose-gc',
    `--max-old-space-size=${MAX_HEAP}`,
    bundledFile('cli/bin.ts'),
    'start',
    '--config',
    bundledFile('test/hostile/attacked.config.ts'),
  ]
  const env = { ...process.env, [SETTINGS]: JSON.stringify(settings) }
  const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  const kill = () => void child.kill('SIGKILL')
  process.once('exit', kill)
  const lines: string[] = []
  const keep = (line: string) => {
    lines.push(line)
    if (lines.length > KEPT_LINES) lines.shift()
  }
  let stopping = false
  const ended = once(child, 'exit').then(([code, signal]) => {
    process.off('exit', kill)
    const how = code ?? signal
    if (!stopping) events.crashed(String(how), lines.slice(-25).join('\n'))
    return how as number | string
  })
  readLog(child, events, keep)
  const output: string[] = []
  if (child.stdout) createInterface({ input: child.stdout }).on('line', line => output.push(line))
  const url = await new Promise<string>((resolve, reject) => {
    const look = setInterval(() => {
      const found = /listening on (http:\S+)/.exec(output.join('\n'))?.[1]
      if (found === undefined) return
      clearInterval(look)
      resolve(found)
    }, 20)
    void ended.then(how => {
      clearInterval(look)
      reject(new Error(`the host ended with ${how}:\n${lines.join('\n')}`))
    })
  })
  child.on('message', (report: Report) => {
    if (report.kind === 'stall') events.stalled(report.stall)
  })
  const alive = () => child.exitCode === null && child.signalCode === null

  /** Resolves with the report that answers, or undefined where none comes. */
  function ask<Kind extends Report['kind']>(question: Question, kind: Kind) {
    type Wanted = Extract<Report, { kind: Kind }>
    return new Promise<Wanted | undefined>(resolve => {
      const settle = (report?: Wanted) => {
        clearTimeout(timer)
        child.off('message', look)
        resolve(report)
      }
      const look = (report: Report) => {
        if (report.kind === kind) settle(report as Wanted)
      }
      const timer = setTimeout(() => settle(), ASK_LIMIT)
      void ended.then(() => settle())
      child.on('message', look)
      if (alive()) child.send(question, () => undefined)
      else settle()
    })
  }

  const host: HostProcess = {
    url,
    alive,
    holding: async collect => (await ask({ ask: 'holding', collect }, 'holding'))?.holding,
    longest: async () => (await ask({ ask: 'longest' }, 'longest'))?.ran,
    async stop() {
      stopping = true
      if (alive()) child.kill('SIGTERM')
      const timer = setTimeout(kill, STOP_LIMIT)
      const code = await ended
      clearTimeout(timer)
      const counted = /running requests: (\d+) finished, (\d+) cancelled/.exec(output.join('\n'))
      return { code, running: counted ? Number(counted[1]) + Number(counted[2]) : undefined }
    },
  }
  return host
}
