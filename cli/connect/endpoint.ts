// The server for `mcp-host connect`: a given URL, or a route of the local config.
import { existsSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Host } from '../../core/host.ts'
import { checkServerUrl } from '../client/stored-logins.ts'
import { inspectConfig } from '../config.ts'
import { type CommandContext, usage } from '../context.ts'
import { exampleRoute } from '../start-page.ts'
import type { Reached } from './clients.ts'

export interface Endpoint {
  readonly url: string
  readonly name: string
  readonly local?: { readonly file: string; readonly route: string }
}

const asName = (text: string) =>
  text
    .replace(/[^\w-]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 64) || 'mcp-server'

export function checkName(name: string): string {
  if (/^[A-Za-z0-9_-]{1,64}$/.test(name)) return name
  throw usage(`--name is ${JSON.stringify(name)}; give 1 to 64 letters, digits, _ or -`)
}

export function endpointAt(given: string): Endpoint {
  const { href, username, password, hostname, port } = new URL(checkServerUrl(given))
  if (username !== '' || password !== '') {
    throw usage('the URL contains a user or password, which the file would contain; omit it')
  }
  // The normalised URL contains no quotes and spaces.
  return { url: href, name: asName(/^(?:localhost|127\.|\[)/.test(hostname) ? `local-${port || '80'}` : hostname) }
}

function reachable(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (!parsed || parsed.port === '0') {
    throw usage('the port of the config is unknown; give the URL, or set http.port or http.publicUrl')
  }
  return url.replace(/^(https?:\/\/)(?:0\.0\.0\.0|\[::\])(?=[:/]|$)/, '$1127.0.0.1')
}

function endpointOf(host: Host, path: string | undefined): { url: string; route: string } {
  // The first lookup determines the path, which is part of every URL.
  const inspected = host.inspect(path ?? '/')
  const shown = exampleRoute(host.routes)
  const known = host.routes.map(({ path }) => path).join(', ')
  if (path !== undefined) {
    if (!inspected) throw usage(`--route: nothing is served at ${path}; available: ${known}`)
    return { url: reachable(inspected.route.url(inspected.params)), route: path }
  }
  if (!shown) throw usage(`no transport serves any of the routes ${known}`)
  return { url: reachable(shown.url), route: shown.samplePath }
}

export const endpointHere = (context: CommandContext, config?: string, path?: string): Promise<Endpoint> =>
  inspectConfig({ config, 'log-level': 'fatal' }, context, async (host, loaded) => {
    const { url, route } = endpointOf(host, path)
    const { server } = loaded.config as { server: { name: string } }
    return { url, name: asName(server.name), local: { file: loaded.file, route } }
  })

type Starter = Pick<NodeJS.Process, 'platform' | 'execPath'> & Pick<CommandContext, 'script'>

/**
 * Starts npx without a shell. On Windows, npx is a cmd.exe script that would interpret `&` and `|` of a URL, so the underlying
 * program is used.
 */
function npx(words: readonly string[], { platform, execPath }: Starter): Reached {
  const args = ['-y', 'mcp-host', ...words]
  if (platform !== 'win32') return { command: 'npx', args }
  const program = join(dirname(execPath), 'node_modules', 'npm', 'bin', 'npx-cli.js')
  if (existsSync(program)) return { command: execPath, args: [program, ...args] }
  throw usage(`npx is not next to ${execPath}: use a Node.js installation that includes npm`)
}

export const throughProxy = ({ url }: Endpoint, starter: Starter): Reached => npx(['proxy', url], starter)

/** Runs `mcp-host stdio` of this installation, because clients start it in another folder. */
export function throughStdio({ local }: Endpoint, starter: Starter): Reached {
  if (!local) throw usage('--stdio starts the server of a local config: omit the URL')
  const words = ['stdio', '--config', local.file, '--route', local.route]
  const script = existsSync(starter.script) ? realpathSync(starter.script) : ''
  const isKept = script.endsWith('.js') && !/[\\/]_npx[\\/]/.test(script)
  return isKept ? { command: starter.execPath, args: [script, ...words] } : npx(words, starter)
}
