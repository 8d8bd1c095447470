// Resolves the options of one server.
import { readFileSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { parseDuration, parseSize, StartError } from '../../core/plugin.ts'
import type { CommandTarget, TlsOptions } from '../../remote/index.ts'
import { isPerCaller, type SecretSource } from '../families/credentials/index.ts'
import type { ServerAuth, UpstreamDefaults, UpstreamOptions, UpstreamServer } from './options.ts'

type Path = readonly (string | number)[]

export interface HttpSettings {
  readonly url: string
  readonly headers: Readonly<Record<string, SecretSource>>
  readonly forwardHeaders: readonly string[]
  readonly tls: TlsOptions | undefined
  readonly auth: ServerAuth | undefined
}

/** The settings of one server. Durations in milliseconds; 0: no limit. */
export type ServerSettings = ReturnType<typeof resolveServer>

const durationOrOff = (value: string | number) => (value === 'off' ? 0 : parseDuration(value))

/** Headers that belong to the caller's connection or identity. */
const NEVER_FORWARDED =
  /^(authorization|proxy-.*|cookie2?|set-cookie|host|forwarded|x-forwarded-.*|x-real-ip|connection|keep-alive|transfer-encoding|te|trailer|upgrade|content-.*|accept|origin|referer|last-event-id|dpop|mcp-.*|traceparent|tracestate|baggage)$/i
const NEVER_SET = /^(host|connection|content-length|content-type|transfer-encoding|accept|mcp-.*|last-event-id)$/i
/** Programs that can download the server first. */
const DOWNLOADS = /^(?:npx|uvx)(?:\.cmd|\.exe)?$/
/** Toolset names that can be part of a URI scheme. The first `+` ends the name. */
const WRAPPING_NAME = /^[A-Za-z][A-Za-z0-9.-]*$/
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

function checkHeaders({ headers = {}, forwardHeaders = [] }: UpstreamServer, at: Path): void {
  for (const name of Object.keys(headers)) {
    if (HEADER_NAME.test(name) && !NEVER_SET.test(name)) continue
    throw new StartError('MH2943', `the header "${name}" cannot be set`, { at: [...at, 'headers', name] })
  }
  for (const [index, name] of forwardHeaders.entries()) {
    if (HEADER_NAME.test(name) && !NEVER_FORWARDED.test(name)) continue
    const why = `the header "${name}" is never forwarded; use \`headers\` or \`auth\` to give the server its own credentials`
    throw new StartError('MH2943', why, { at: [...at, 'forwardHeaders', index] })
  }
}

function readTls({ tls }: UpstreamServer, at: Path, directory: string): TlsOptions | undefined {
  if (!tls) return undefined
  const texts = Object.entries(tls).map(([key, file]) => {
    try {
      return [key, readFileSync(resolve(directory, file), 'utf8')]
    } catch (cause) {
      throw new StartError('MH2943', `cannot read ${file}: ${(cause as Error).message}`, {
        at: [...at, 'tls', key],
        cause,
      })
    }
  })
  return Object.fromEntries(texts) as TlsOptions
}

function readTarget(
  server: UpstreamServer,
  at: Path,
  directory: string,
  options: UpstreamOptions,
): { readonly http: HttpSettings | undefined; readonly command: CommandTarget | undefined } {
  const { url, command, args = [], env, passEnv, cwd } = server
  const own = Object.keys(server)
  const refuse = (names: readonly string[], other: string) => {
    const found = names.find(name => own.includes(name))
    if (found !== undefined)
      throw new StartError('MH2943', `cannot be combined with \`${other}\``, { at: [...at, found] })
  }
  if (url !== undefined) {
    refuse(['command', 'args', 'env', 'passEnv', 'cwd'], 'url')
    checkHeaders(server, at)
    const { headers = {}, forwardHeaders = [], auth } = server
    const tls = readTls(server, at, directory)
    if (isPerCaller(auth) && server.sessions === 'shared') {
      const why = `requires separate sessions, because \`auth\` uses the token of each caller`
      throw new StartError('MH2943', why, { at: [...at, 'sessions'] })
    }
    if (!URL.canParse(url)) throw new StartError('MH2943', `"${url}" is not a URL`, { at: [...at, 'url'] })
    return { http: { url, headers, forwardHeaders, auth, tls }, command: undefined }
  }
  const [program, ...more] = [command ?? []].flat()
  if (program === undefined) throw new StartError('MH2943', 'requires `url` or `command`', { at })
  refuse(['headers', 'forwardHeaders', 'tls', 'auth'], 'command')
  const { stopGrace } = options.processes ?? {}
  const target: CommandTarget = {
    command: program,
    args: [...more, ...args],
    cwd: resolve(directory, cwd ?? '.'),
    ...(env && { env }),
    ...(passEnv && { passEnv }),
    ...(stopGrace !== undefined && { stopGrace: parseDuration(stopGrace) }),
  }
  return { http: undefined, command: target }
}

export interface ConfigLocation {
  readonly directory: string
  readonly at: Path
  readonly lock?: { readonly isFrozen: boolean }
}

/** Resolves the options of a server. Throws a StartError if they contradict each other. */
export function resolveServer(
  name: string,
  options: UpstreamOptions,
  { directory, at: pluginAt, lock }: ConfigLocation,
) {
  const server = options.servers[name] ?? {}
  const at = [...pluginAt, 'servers', name]
  const either = <Key extends keyof UpstreamDefaults>(key: Key) => server[key] ?? options[key]
  const { asks = {}, revision } = server
  const isFrozen = lock?.isFrozen === true
  if (server.uris === 'wrap' && !WRAPPING_NAME.test(name)) {
    const why = 'requires a toolset name of letters, digits, `.` and `-` that begins with a letter'
    throw new StartError('MH2943', why, { at: [...at, 'uris'] })
  }
  const target = readTarget(server, at, directory, options)
  return {
    name,
    at,
    ...target,
    revision: revision === 'auto' ? undefined : revision,
    connectTimeout: parseDuration(
      either('connectTimeout') ?? (DOWNLOADS.test(basename(target.command?.command ?? '')) ? '60s' : '15s'),
    ),
    callTimeout: parseDuration(either('callTimeout') ?? '60s'),
    maxCallTime: durationOrOff(either('maxCallTime') ?? '10m'),
    refresh: durationOrOff(either('refresh') ?? '5m'),
    whenDown: either('whenDown') ?? 'keep',
    newTools: isFrozen ? 'withhold' : (either('newTools') ?? 'serve'),
    changed: isFrozen ? 'withhold' : (either('changed') ?? 'withhold'),
    sessions: server.sessions ?? 'auto',
    maxSessions: server.maxSessions ?? 1_000,
    concurrency: server.concurrency ?? (server.url === undefined ? 16 : 64),
    idle: durationOrOff(options.processes?.idle ?? '5m'),
    prefix: server.prefix ?? `${name.replaceAll(/[^A-Za-z0-9_.-]/g, '_')}_`,
    include: server.include,
    exclude: server.exclude ?? [],
    resources: server.resources ?? true,
    prompts: server.prompts ?? true,
    overrides: server.overrides ?? {},
    instructions: server.instructions ?? 'ignore',
    access: server.access,
    asks: { elicit: asks.elicit ?? true, sample: asks.sample ?? true, roots: asks.roots ?? false },
    input: server.input ?? 'pass',
    output: server.output ?? 'pass',
    meta: server.meta ?? 'pass',
    uris: server.uris ?? 'keep',
    maxResult: parseSize(server.maxResult ?? '1mb'),
    maxSchema: parseSize(server.maxSchema ?? '64kb'),
    maxTools: server.maxTools ?? 1_000,
  }
}
