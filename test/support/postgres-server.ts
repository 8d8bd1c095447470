// A real PostgreSQL server on a free port with its own folder. A test can stop, pause and restart it.
// Call `needsPostgres` in `before`: it skips the suite if the program is not installed.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { Context } from 'mocha'
import pg from 'pg'
import { freePort } from './free-port.ts'
import { needsProgram } from './needs-program.ts'

export interface PostgresServer {
  readonly port: number
  /** `postgres://...`, of the superuser. */
  readonly url: string
  /** Runs a statement as the superuser. */
  sql(statement: string): Promise<void>
  /** Pauses all processes: connections stay open without responses. */
  pause(): void
  resume(): void
  /** Kills all processes, as in a crash. */
  kill(): Promise<void>
  /** Restarts on the same port with the stored data. */
  start(): Promise<void>
  /** Kills the server and removes its folder. */
  remove(): Promise<void>
}

/** Debian has the programs of each version in a folder that is not in PATH. */
const DEBIAN = '/usr/lib/postgresql'

function programsIn(): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : []
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), ...versions.map(one => join(DEBIAN, one, 'bin'))]
  return folders.find(folder => ['initdb', 'postgres', 'psql'].every(one => existsSync(join(folder, one))))
}

export const needsPostgres = (context: Context) =>
  needsProgram(context, 'postgres', 'apt-get install postgresql', () => programsIn() !== undefined)

/** The first value of the answer. */
export const queryPostgres = (url: string, sql: string): string =>
  execFileSync(join(programsIn() ?? '', 'psql'), ['-At', '-c', sql, url], { encoding: 'utf8' }).trim()

/** The server refuses to run as root: then it runs as the user nobody. */
function userOf(): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {}
  const idOf = (option: string) => Number(execFileSync('id', [option, 'nobody'], { encoding: 'utf8' }))
  return { uid: idOf('-u'), gid: idOf('-g') }
}

const started = new Set<PostgresServer>()

async function whenReady(child: ChildProcess): Promise<void> {
  let said = ''
  await new Promise<void>((resolve, reject) => {
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said += text
      if (said.includes('database system is ready to accept connections')) resolve()
    })
    child.once('exit', code => reject(new Error(`postgres ended with ${code}: ${said}`)))
    child.once('error', reject)
  })
}

/** `settings`: of postgresql.conf. */
export async function startPostgres(settings: Readonly<Record<string, string>> = {}): Promise<PostgresServer> {
  const programs = programsIn() ?? ''
  const user = userOf()
  const folder = mkdtempSync(join(tmpdir(), 'postgres-'))
  if (user.uid !== undefined && user.gid !== undefined) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  const port = await freePort()
  const given = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']
  execFileSync(join(programs, 'initdb'), given, { ...user, cwd: folder, stdio: 'pipe' })
  const options = {
    port: String(port),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    ...settings,
  }
  const args = ['-D', data, ...Object.entries(options).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  let child: ChildProcess | undefined

  /** The first process has all others as children. */
  const signal = (name: NodeJS.Signals) => {
    if (child?.pid === undefined) return
    const children = execFileSync('ps', ['-o', 'pid=', '--ppid', String(child.pid)], { encoding: 'utf8' })
    for (const pid of [child.pid, ...children.trim().split(/\s+/).map(Number)]) {
      try {
        process.kill(pid, name)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
      }
    }
  }

  async function kill() {
    const dying = child
    if (!dying || dying.exitCode !== null || dying.signalCode !== null) return
    signal('SIGKILL')
    if (dying.exitCode === null && dying.signalCode === null) await once(dying, 'exit')
    child = undefined
    rmSync(join(data, 'postmaster.pid'), { force: true })
  }

  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const server: PostgresServer = {
    port,
    url,
    async sql(statement) {
      const client = new pg.Client(url)
      client.on('error', () => undefined)
      await client.connect()
      await client.query(statement).catch(() => undefined)
      await client.end().catch(() => undefined)
    },
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
    kill,
    async start() {
      child = spawn(join(programs, 'postgres'), args, { ...user, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
      await whenReady(child)
    },
    async remove() {
      started.delete(server)
      await kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  started.add(server)
  await server.start()
  return server
}

/** Ends every server that this file started: call it in `after`. */
export async function stopPostgres(): Promise<void> {
  await Promise.all([...started].map(server => server.remove()))
}
