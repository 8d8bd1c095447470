// Starts nginx and Caddy with the files of examples/deploy, in which only ports and paths are replaced. Each has its
// own folder and ends with the test.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../../support/eventually.ts'

export interface RunningProxy {
  readonly port: number
  /** Resolves when it has ended; by default nothing is left to it to do. */
  stop(signal?: NodeJS.Signals): Promise<void>
}

const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

const connects = (port: number) =>
  new Promise<boolean>(resolve => {
    const socket = connect({ host: '127.0.0.1', port })
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })

/** Resolves when something listens on the port, and on each of `others`; throws the output of a program that ended before. */
export async function startListening(
  command: readonly string[],
  port: number,
  env = process.env,
  others: readonly number[] = [],
): Promise<RunningProxy> {
  const [program = '', ...args] = command
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  running.add(child)
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', part => {
      said += part
    })
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  async function stop(signal: NodeJS.Signals = 'SIGKILL') {
    if (!hasEnded()) {
      const ended = once(child, 'exit')
      child.kill(signal)
      await ended
    }
    running.delete(child)
  }
  for (const one of [port, ...others])
    await eventually(`${program} listens on port ${one}`, async () => hasEnded() || connects(one))
  if (hasEnded()) throw new Error(`${program} ended: ${said}`)
  return { port, stop }
}

const folders: string[] = []

export function ownFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-host-proxy-'))
  folders.push(folder)
  return folder
}

/** Removes what this file made: call it in `after`, once everything was stopped. */
export function removeFolders(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
}

/** Replaces each once or more; throws where one is not there, so that a test hears of a file that has changed. */
export function replaced(text: string, changes: readonly (readonly [string | RegExp, string])[]): string {
  return changes.reduce((before, [from, to]) => {
    const after = before.replaceAll(from instanceof RegExp ? new RegExp(from, 'gm') : from, to)
    if (after === before) throw new Error(`there is no ${from} in the file`)
    return after
  }, text)
}

/** A whole configuration of nginx, as Debian's and Docker's includes it in their own. Returns its file. */
export function writeNginx(text: string, folder = ownFolder()): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(name => `${name}_temp_path ${name};`)
  const http = ['access_log off;', ...temporary, text].join('\n')
  const whole = `daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log stderr warn;\nevents {}\nhttp {\n${http}\n}\n`
  writeFileSync(join(folder, 'nginx.conf'), whole)
  return join(folder, 'nginx.conf')
}

export const nginxCommand = (file: string): readonly string[] => [
  'nginx',
  ...['-p', join(file, '..'), '-c', file, '-e', 'stderr'],
]

/** A certificate for `name` that signs itself: its files. */
export function makeCertificate(folder: string, name: string): { readonly cert: string; readonly key: string } {
  const [cert, key] = [join(folder, 'proxy.pem'), join(folder, 'proxy.key')]
  const names = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`]
  const kind = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-keyout', key, '-out', cert]
  execFileSync('openssl', [...kind, ...names], { stdio: 'pipe' })
  return { cert, key }
}

interface CaddySettings {
  readonly site: string
  readonly nodes: readonly string[]
}

/** What Caddy keeps goes into a folder of the test. */
export function caddyEnv(folder: string, { site, nodes }: CaddySettings): NodeJS.ProcessEnv {
  const own = { XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder, HOME: folder }
  return { ...process.env, ...own, MCP_SITE: site, MCP_NODES: nodes.join(' ') }
}

/** The Caddyfile as Caddy reads it, without port 80 and that of its administration, which others on this machine may have. */
export function adaptCaddyfile(file: string, env: NodeJS.ProcessEnv): Record<string, unknown> {
  const json = execFileSync('caddy', ['adapt', '--config', file, '--adapter', 'caddyfile'], {
    env,
    encoding: 'utf8',
    stdio: 'pipe',
  })
  const { apps, ...rest } = JSON.parse(json)
  const servers = Object.entries<{ listen: string[] }>(apps.http.servers).filter(
    ([, { listen }]) => listen[0] !== ':80',
  )
  return {
    ...rest,
    apps: { ...apps, http: { ...apps.http, servers: Object.fromEntries(servers) } },
    admin: { disabled: true },
  }
}

export function writeCaddy(file: string, env: NodeJS.ProcessEnv, folder: string): string {
  writeFileSync(join(folder, 'caddy.json'), JSON.stringify(adaptCaddyfile(file, env)))
  return join(folder, 'caddy.json')
}

export const readExample = (path: string): string =>
  readFileSync(new URL(`../../../examples/${path}`, import.meta.url), 'utf8')

/** examples/deploy/nginx/mcp.conf in front of two nodes, each `address:port`; without TLS. */
export function startMcpConf(nodes: readonly string[], port: number): Promise<RunningProxy> {
  const [first = '', second = ''] = nodes
  const text = replaced(readExample('deploy/nginx/mcp.conf'), [
    ['127.0.0.1:3001', first],
    ['127.0.0.1:3002', second],
    ['listen 443 ssl http2;', `listen 127.0.0.1:${port};`],
    [/^ *ssl_.*\n/, ''],
    ['/var/log/nginx/mcp.log', 'mcp.log'],
  ])
  return startListening(nginxCommand(writeNginx(text)), port)
}

/** examples/deploy/caddy/Caddyfile in front of nodes, each `address:port`; without TLS. */
export function startCaddy(nodes: readonly string[], port: number): Promise<RunningProxy> {
  const folder = ownFolder()
  const file = new URL('../../../examples/deploy/caddy/Caddyfile', import.meta.url).pathname
  const env = caddyEnv(folder, { site: `http://127.0.0.1:${port}`, nodes })
  return startListening(['caddy', 'run', '--config', writeCaddy(file, env, folder)], port, env)
}
