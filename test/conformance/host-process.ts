// The host as a process that prints its URL. It is stopped by its pid, also if this process ends first.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { type BundledFile, bundledFile } from '../support/compiled.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** Milliseconds until it must listen, and until it must have ended after SIGTERM. */
const START_LIMIT = 30_000
const STOP_LIMIT = 10_000
const POLL = 50

export interface HostProcess {
  /** Where it listens, without a trailing slash. */
  readonly url: string
  /** Ends it: SIGTERM, and SIGKILL where that is not heeded in 10 s. True when it ended by itself. */
  stop(): Promise<boolean>
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no free port')
  return address.port
}

const sleep = (milliseconds: number) => new Promise(resolve => setTimeout(resolve, milliseconds))

export interface HostSettings {
  readonly env?: Readonly<Record<string, string>>
  /** After `mcp-host start`. */
  readonly args?: readonly string[]
}

/** Starts the host with a config (a path from the repository's root); its output goes to the file `log`. */
export async function startHost(config: BundledFile, log: string, settings: HostSettings = {}): Promise<HostProcess> {
  const output = openSync(log, 'a')
  const args = [bundledFile('cli/bin.ts'), 'start', '--config', bundledFile(config), ...(settings.args ?? [])]
  const env = { ...process.env, PORT: String(await findFreePort()), ...settings.env }
  const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ['ignore', output, output] })
  const ended = new Promise<void>(resolve => child.once('exit', () => resolve()))
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)

  async function stop() {
    child.kill('SIGTERM')
    const timer = setTimeout(kill, STOP_LIMIT)
    await ended
    clearTimeout(timer)
    process.off('exit', kill)
    return child.signalCode !== 'SIGKILL'
  }

  for (const deadline = Date.now() + START_LIMIT; Date.now() < deadline && !hasEnded(); await sleep(POLL)) {
    const [, url] = /listening on (http:\/\/127\.0\.0\.1:\d+)/.exec(readFileSync(log, 'utf8')) ?? []
    if (url !== undefined) return { url, stop }
  }
  const reason = hasEnded() ? `ended with ${child.exitCode ?? child.signalCode}` : 'does not listen'
  if (!hasEnded()) await stop()
  throw new Error(`the host ${reason}:\n${readFileSync(log, 'utf8').trim()}`)
}
