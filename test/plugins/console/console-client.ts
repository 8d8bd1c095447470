// A host with the console, and an operator who uses its API.
import type { Config } from '../../../core/index.ts'
import { SECRET_HEADER } from '../../../plugins/console/api.ts'
import { type StartedHost, type StartOptions, startHost, type TestConfig } from '../../support/start-host.ts'
import { exchange, type StreamExchange } from '../../support/stream-exchange.ts'

// biome-ignore lint/suspicious/noExplicitAny: a response has any shape; each test states the one it expects
type Json = any

export interface ApiReply {
  readonly status: number
  readonly headers: StreamExchange['headers']
  readonly text: string
  readonly body: Json
}

type Headers = Readonly<Record<string, string>>

export interface Asked {
  readonly method?: string
  readonly headers?: Headers
  readonly body?: unknown
}

/** A request without a session and without the headers of the page. */
export async function ask(url: string, { method = 'GET', headers = {}, body }: Asked = {}): Promise<ApiReply> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const sent = await exchange(url, { method, headers, ...(body !== undefined && { body: text }) })
  const answer = await sent.text()
  return {
    status: sent.status,
    headers: sent.headers,
    text: answer,
    // Of several lines of JSON, the last.
    body: /json/.test(String(sent.headers['content-type']))
      ? JSON.parse(answer.trim().split('\n').at(-1) ?? '')
      : undefined,
  }
}

/** Of a login. Other requests have the secret of the login in the same header. */
export const PAGE_HEADERS = { [SECRET_HEADER]: '1', 'Content-Type': 'application/json' }

export const cookieIn = ({ headers }: ApiReply): string => String(headers['set-cookie']).split(';')[0] ?? ''

/** The cookie and the secret of a login. */
export const headersIn = (login: ApiReply): Headers => ({ Cookie: cookieIn(login), [SECRET_HEADER]: login.body.secret })

export const logIn = (origin: string, token: string, headers: Headers = {}): Promise<ApiReply> =>
  ask(`${origin}/api/login`, { method: 'POST', headers: { ...PAGE_HEADERS, ...headers }, body: { token } })

export interface Operator extends StartedHost {
  readonly origin: string
  /** Of the log; it was used. */
  readonly oneTimeToken: string
  readonly cookie: string
  /** The cookie and the secret of the login. */
  readonly headers: Headers
  get(path: string): Promise<ApiReply>
  post(path: string, body: object): Promise<ApiReply>
}

/** The origin of the console, and its one-time token. */
export function placeOf({ log }: StartedHost): { readonly origin: string; readonly token: string } {
  const line = log.find(({ code }) => code === 'MH3608')
  const { origin, hash } = new URL(String(line?.['url']))
  return { origin, token: hash.slice('#t='.length) }
}

export async function startConsole(
  config: TestConfig,
  options: NonNullable<Config['plugins']>[string] & object = {},
  more: { readonly directory?: string } & StartOptions = {},
): Promise<Operator> {
  const { directory, ...settings } = more
  const plugins = { 'transport-streamable': {}, ...config.plugins, console: { port: 0, ...options } }
  const started = await startHost({ ...config, plugins }, directory, settings)
  const { origin, token } = placeOf(started)
  const { token: own } = options as { readonly token?: string }
  const login = await logIn(origin, own ?? token)
  if (login.status !== 200) throw new Error(`the login was answered ${login.status}`)
  const cookie = cookieIn(login)
  const headers = headersIn(login)
  return {
    ...started,
    origin,
    oneTimeToken: token,
    cookie,
    headers,
    get: path => ask(`${origin}${path}`, { headers }),
    post: (path, body) => ask(`${origin}${path}`, { method: 'POST', headers: { ...PAGE_HEADERS, ...headers }, body }),
  }
}
