// Reaches a server through a proxy with additional headers, and records the request ids of responses.
import { resolve } from 'node:path'
import { usesProxy } from '../../client/node/fetch.ts'
import { createProxyFetch } from '../../client/node/index.ts'
import { withinOrigin } from '../../client/replay.ts'
import { printable } from '../../client/text.ts'
import type { CommandOptionTable, CommandValues } from '../command.ts'
import { type CommandContext, readText, usage } from '../context.ts'
import { parseObject } from '../text.ts'
import type { Login } from './stored-logins.ts'

export const HTTP_OPTIONS = {
  header: {
    value: '<name: value>',
    multiple: true,
    help: `Send this header, with \${NAME} from the environment; @file reads one header per line; repeatable`,
  },
  proxy: { value: '<url>', help: 'HTTP proxy; env uses HTTPS_PROXY and NO_PROXY; none disables it' },
} as const satisfies CommandOptionTable

export interface HttpOptions {
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly headerFiles: readonly string[]
  readonly proxy: string | undefined
  readonly base?: typeof fetch
}

/** Replaces `${NAME}` by the environment. Error messages never quote the header, whose value can be a secret. */
function readHeader(line: string, option: string, { env, secrets }: CommandContext): readonly [string, string] {
  const text = line.replace(/\$\{([^}]*)\}/g, (_, name: string) => {
    const value = env[name]
    if (value === undefined) throw usage(`${option}: \${${name}} is not in the environment; set ${name}`)
    return value
  })
  const [, name, value = ''] = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*(.*)$/.exec(text.trim()) ?? []
  if (name === undefined) throw usage(`${option} is not a header; write it as 'Name: value', or @file`)
  try {
    new Headers([[name, value]])
  } catch {
    throw usage(`${option} ${name} has a value that is invalid in a header`)
  }
  secrets.add(value.length >= 8 ? value : undefined)
  return [name, value.trim()]
}

/** Reads one header per line; `#` starts a comment. */
export function readHeaderFile(file: string, option: string, context: CommandContext): (readonly [string, string])[] {
  const lines = readText(file, `${option}: ${file}`).split('\n')
  const headers = lines.filter(line => !/^\s*(?:#|$)/.test(line))
  return headers.map(line => readHeader(line, `a line of ${file}`, context))
}

function readProxy(proxy: string | undefined): string | undefined {
  if (proxy === undefined || proxy === 'env' || proxy === 'none') return proxy
  if (!URL.canParse(proxy) || !/^https?:$/.test(new URL(proxy).protocol)) {
    throw usage('--proxy is the http or https URL of a proxy, env, or none')
  }
  const { username, password } = new URL(proxy)
  if (username === '' && password === '') return proxy
  throw usage('--proxy contains a password that other programs can read; set HTTPS_PROXY and use --proxy env')
}

export function readHttpOptions(context: CommandContext, { header = [], proxy }: CommandValues<typeof HTTP_OPTIONS>) {
  const files = header.filter(text => text.startsWith('@')).map(text => resolve(context.cwd, text.slice(1)))
  const headers = header.filter(text => !text.startsWith('@')).map(text => readHeader(text, '--header', context))
  return { headers, headerFiles: files, proxy: readProxy(proxy) }
}

export function createHeaders(context: CommandContext, http: HttpOptions, login: Pick<Login, 'headerFiles'>): Headers {
  const files = http.headerFiles.length > 0 ? http.headerFiles : (login.headerFiles ?? [])
  const fileHeaders = files.flatMap(file => readHeaderFile(file, '--header', context))
  return new Headers([...fileHeaders, ...http.headers].map(([name, value]) => [name, value]))
}

/** Form requests go to an authorization server, possibly at the same origin, and must not get these headers. */
const isForm = (headers: Headers) => headers.get('content-type')?.startsWith('application/x-www-form-urlencoded')

/** Creates a `fetch` for the login's server and its metadata. Redirects stay within the origin. */
export function createLoginFetch(
  context: CommandContext,
  http: HttpOptions,
  login: Pick<Login, 'url' | 'headerFiles' | 'proxy'>,
): typeof fetch {
  const proxy = http.proxy ?? login.proxy
  const base = withinOrigin(
    http.base ?? (proxy === undefined || !usesProxy(proxy) ? fetch : createProxyFetch({ proxy })),
  )
  const added = createHeaders(context, http, login)
  if ([...added].length === 0) return base
  const { origin } = new URL(login.url)
  return (input, init) => {
    const url = new URL(input instanceof Request ? input.url : String(input))
    const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
    if (url.origin !== origin || isForm(headers)) return base(input, init)
    for (const [name, value] of added) if (!headers.has(name)) headers.set(name, value)
    return base(input, { ...init, headers })
  }
}

const MAX_ID_LENGTH = 128

export type RequestIds = ReturnType<typeof createRequestIds>

function isRequest(body: unknown): boolean {
  const message = parseObject(body)
  return message !== undefined && 'method' in message && 'id' in message
}

/** Remembers the request id of the last response, for messages about failures. */
export function createRequestIds({ say }: CommandContext) {
  let last: string | undefined
  return {
    watch:
      (base: typeof fetch): typeof fetch =>
      async (input, init) => {
        const isCall = isRequest(init?.body)
        if (isCall) last = undefined
        const response = await base(input, init)
        if (isCall) last = response.headers.get('x-request-id') ?? undefined
        return response
      },
    print(): void {
      if (last !== undefined) say(`request id: ${printable(last, MAX_ID_LENGTH)} (for the operator of the server)`)
    },
  }
}
