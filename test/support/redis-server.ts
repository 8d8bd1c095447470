// A real redis-server on a free port with its own folder. A test can stop, pause, disconnect and restart it.
// Call `needsRedis` in `before`: it skips the suite if the program is not installed.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Context } from 'mocha'
import { freePort } from './free-port.ts'
import { needsProgram } from './needs-program.ts'

export interface RedisServerSettings {
  /** Every write is on disk before its response; otherwise nothing is persisted. */
  readonly persistent?: boolean
  /** Such as `4mb`; beyond it writes are refused. */
  readonly maxmemory?: string
  /** ACL of the default user and of others: lines of `user ...`. */
  readonly acl?: readonly string[]
  /** TLS only: with a certificate for 127.0.0.1 created for this test, or with these files, and with client certificates. */
  readonly tls?: boolean | RedisCertificates
  /** Microseconds to load each key at restart. */
  readonly slowStart?: number
  /** Runs as a Redis Cluster node. */
  readonly cluster?: boolean
  readonly port?: number
  /** Runs as a Sentinel, without keys; its configuration, line by line. */
  readonly sentinel?: boolean | readonly string[]
  /** Additional command-line arguments: names and values. */
  readonly more?: readonly string[]
}

/** Names of PEM files. */
export interface RedisCertificates {
  readonly ca: string
  readonly cert: string
  readonly key: string
}

export interface RedisServer {
  /** `redis://127.0.0.1:port`, or `rediss://`. */
  readonly url: string
  readonly port: number
  /** The CA certificate file; undefined without TLS. */
  readonly ca: string | undefined
  /** The output of `redis-cli`, one entry per line. */
  cli(...args: readonly string[]): string[]
  /** Pauses the process: connections stay open without responses. */
  pause(): void
  resume(): void
  /** Kills the process, as in a crash. */
  kill(): Promise<void>
  /** Restarts on the same port with the persisted data. */
  start(): Promise<void>
  /** Stops the process and removes its folder. */
  remove(): Promise<void>
}

export const needsRedis = (context: Context) => needsProgram(context, 'redis-server', 'apt-get install redis-server')

/** A self-signed certificate for 127.0.0.1. */
function makeCertificate(folder: string) {
  const [key, cert] = [join(folder, 'redis.key'), join(folder, 'redis.pem')]
  const names = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1']
  const files = ['-keyout', key, '-out', cert]
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', ...files, ...names], {
    stdio: 'pipe',
  })
  return { key, cert, ca: cert }
}

function argumentsFor(settings: RedisServerSettings, port: number, folder: string): string[] {
  const { persistent, maxmemory, slowStart, acl = [], cluster, more = [] } = settings
  if (settings.sentinel) {
    const file = join(folder, 'sentinel.conf')
    const lines = settings.sentinel === true ? ['sentinel monitor main 127.0.0.1 1 1'] : settings.sentinel
    writeFileSync(
      file,
      [
        settings.tls ? `port 0\ntls-port ${port}` : `port ${port}`,
        'bind 127.0.0.1',
        `dir ${folder}`,
        ...lines,
        '',
      ].join('\n'),
    )
    return [file, '--sentinel']
  }
  const tls = settings.tls === true ? makeCertificate(folder) : settings.tls || undefined
  const option = (name: string, ...values: readonly string[]) => [`--${name}`, ...values]
  return [
    ...option('bind', '127.0.0.1'),
    ...option('dir', folder),
    ...option('save', ''),
    ...option('appendonly', persistent ? 'yes' : 'no'),
    ...option('appendfsync', 'always'),
    ...option('port', tls ? '0' : String(port)),
    ...(tls
      ? [
          ...option('tls-port', String(port)),
          ...option('tls-cert-file', tls.cert),
          ...option('tls-key-file', tls.key),
          ...option('tls-ca-cert-file', tls.ca),
          ...option('tls-auth-clients', settings.tls === true ? 'no' : 'yes'),
        ]
      : []),
    ...(maxmemory === undefined
      ? []
      : [...option('maxmemory', maxmemory), ...option('maxmemory-policy', 'noeviction')]),
    ...(slowStart === undefined
      ? []
      : [...option('key-load-delay', String(slowStart)), ...option('loading-process-events-interval-bytes', '1024')]),
    ...(cluster ? [...option('cluster-enabled', 'yes'), ...option('cluster-node-timeout', '2000')] : []),
    ...acl.flatMap(line => option('user', ...line.split(' '))),
    ...more,
  ]
}

/** Resolves when it prints that it accepts connections. */
async function whenReady(child: ChildProcess): Promise<void> {
  let said = ''
  await new Promise<void>((resolve, reject) => {
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      said += text
      if (/Ready to accept connections|Sentinel ID is/.test(said)) resolve()
    })
    child.once('exit', code => reject(new Error(`redis-server ended with ${code}: ${said}`)))
    child.once('error', reject)
  })
}

/** Milliseconds for one `redis-cli` command. */
const CLI_LIMIT = 120_000

const started = new Set<RedisServer>()

export async function startRedis(settings: RedisServerSettings = {}): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'redis-'))
  const port = settings.port ?? (await freePort())
  const args = argumentsFor(settings, port, folder)
  const given = typeof settings.tls === 'object' ? settings.tls : undefined
  const ca = given?.ca ?? (settings.tls ? join(folder, 'redis.pem') : undefined)
  let child: ChildProcess | undefined

  async function start() {
    child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'pipe'] })
    await whenReady(child)
  }

  async function kill() {
    const dying = child
    child = undefined
    if (!dying || dying.exitCode !== null || dying.signalCode !== null) return
    dying.kill('SIGKILL')
    await once(dying, 'exit')
  }

  const server: RedisServer = {
    url: `${ca === undefined ? 'redis' : 'rediss'}://127.0.0.1:${port}`,
    port,
    ca,
    cli(...command) {
      const secure =
        ca === undefined ? [] : ['--tls', '--cacert', ca, ...(given ? ['--cert', given.cert, '--key', given.key] : [])]
      const text = execFileSync('redis-cli', ['-h', '127.0.0.1', '-p', String(port), ...secure, ...command], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
        // redis-cli would wait forever for a paused server, or for another process on the port.
        timeout: CLI_LIMIT,
      })
      return text.split('\n').filter(line => line !== '')
    },
    pause: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
    kill,
    start,
    async remove() {
      started.delete(server)
      await kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  started.add(server)
  await start()
  return server
}

/** Ends every server that this file started: call it in `after`. */
export async function stopRedis(): Promise<void> {
  await Promise.all([...started].map(server => server.remove()))
}
