// Valid requests of every method and protocol version, as messages and bytes, which attackers modify.
import { META, MODERN_REVISION } from '../../core/transport.ts'
import type { Chance } from './random.ts'
import type { Identity, Target } from './target.ts'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type Fields = { [key: string]: Json }

export const REVISIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const
export const EVERY_CAPABILITY: Fields = {
  elicitation: { form: {}, url: {} },
  sampling: {},
  roots: { listChanged: true },
}

/** Tools with arguments that fit. */
export const TOOL_CALLS: ReadonlyArray<readonly [name: string, args: Fields]> = [
  ['add', { a: 1, b: 2 }],
  [
    'register',
    {
      name: 'a-name',
      mail: 'a@b.example',
      page: 'https://a.example/b?c=d',
      born: '2020-01-01T00:00:00Z',
      tags: ['a', 'b'],
      address: { street: 'x' },
      level: 'low',
    },
  ],
  ['echo', { text: 'hello' }],
  ['stock', { region: 'eu' }],
  ['large', { kilobytes: 2 }],
  ['wait', { ms: 5 }],
  ['talk', {}],
  ['let_go', {}],
  ['ask', {}],
  ['sample', {}],
  ['roots', {}],
  ['ask_all', {}],
  ['change', {}],
  ['whoami', {}],
  ['purge', {}],
  ['open_vault', {}],
  ['contributed', {}],
]

/** Methods with params that fit. */
export const METHODS: ReadonlyArray<readonly [method: string, params: Fields]> = [
  ...TOOL_CALLS.map(([name, args]) => ['tools/call', { name, arguments: args }] as const),
  ['tools/list', {}],
  ['tools/list', { cursor: 'x' }],
  ['resources/list', {}],
  ['resources/templates/list', {}],
  ['resources/read', { uri: 'pages://one' }],
  ['resources/read', { uri: 'books://fiction/a%20b' }],
  ['resources/read', { uri: 'family3://a/b/c/d' }],
  ['resources/read', { uri: 'secret://one' }],
  ['resources/read', { uri: 'diary://mine' }],
  ['resources/subscribe', { uri: 'pages://one' }],
  ['resources/unsubscribe', { uri: 'pages://one' }],
  ['prompts/list', {}],
  ['prompts/get', { name: 'review', arguments: { shelf: 'poetry' } }],
  ['prompts/get', { name: 'secret_words' }],
  ['completion/complete', { ref: { type: 'ref/prompt', name: 'review' }, argument: { name: 'shelf', value: 'p' } }],
  ['completion/complete', { ref: { type: 'ref/prompt', name: 'secret_words' }, argument: { name: 'x', value: '' } }],
  [
    'completion/complete',
    {
      ref: { type: 'ref/resource', uri: 'books://{shelf}/{title}' },
      argument: { name: 'shelf', value: '' },
      context: { arguments: { title: 'a' } },
    },
  ],
  ['logging/setLevel', { level: 'debug' }],
  ['ping', {}],
  ['server/discover', {}],
  ['subscriptions/listen', { notifications: { toolsListChanged: true, resourceSubscriptions: ['pages://one'] } }],
  ['initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }],
]

export const NOTIFICATIONS: ReadonlyArray<readonly [method: string, params: Fields]> = [
  ['notifications/initialized', {}],
  ['notifications/cancelled', { requestId: 1, reason: 'no more' }],
  ['notifications/progress', { progressToken: 1, progress: 0.5 }],
  ['notifications/roots/list_changed', {}],
]

export const initializeParams = (revision: string = REVISIONS[0], capabilities: Fields = EVERY_CAPABILITY): Fields => ({
  protocolVersion: revision,
  capabilities,
  clientInfo: { name: 'hostile', version: '1.0.0' },
})

export const modernMeta = (): Fields => ({
  [META.protocolVersion]: MODERN_REVISION,
  [META.clientInfo]: { name: 'hostile', version: '1.0.0' },
  [META.clientCapabilities]: EVERY_CAPABILITY,
  [META.logLevel]: 'debug',
})

export type Headers = Record<string, string | readonly string[] | undefined>

/** The header of a name; undefined for what cannot be one. */
const headerValue = (value: Json | undefined) =>
  typeof value === 'string' && /^[\x20-\x7e]*$/.test(value) ? value : undefined

/** What a client of 2026-07-28 sends with a message. */
export function modernHeaders(method: string, params: Fields): Headers {
  const name = headerValue(params['name'] ?? params['uri'])
  const args = params['arguments'] as Fields | undefined
  const region = headerValue(args?.['region'])
  return {
    'MCP-Protocol-Version': MODERN_REVISION,
    'Mcp-Method': headerValue(method),
    ...(name !== undefined && { 'Mcp-Name': name }),
    ...(region !== undefined && { 'Mcp-Param-Region': region }),
  }
}

export interface RequestFields {
  readonly verb?: string
  readonly path?: string
  readonly who?: Identity
  readonly headers?: Headers
  readonly body?: string | Uint8Array
}

/** Lines of a head; a list sends its header once for each, undefined leaves it out. */
export const headerLines = (headers: Headers): string[] =>
  Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map(one => `${name}: ${one}`),
  )

/** The bytes of a request that is right but for what is put over it. */
export function requestBytes(target: Target, fields: RequestFields = {}): Buffer {
  const { verb = 'POST', path = '/', who = 'anonymous', headers = {}, body } = fields
  const bytes = body === undefined ? undefined : Buffer.from(body)
  const base: Headers = {
    Host: target.host,
    Accept: verb === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream',
    Authorization: target.authorization(who),
    ...(bytes && { 'Content-Type': 'application/json', 'Content-Length': String(bytes.length) }),
    ...headers,
  }
  const head = Buffer.from(`${verb} ${path} HTTP/1.1\r\n${headerLines(base).join('\r\n')}\r\n\r\n`, 'latin1')
  return bytes ? Buffer.concat([head, bytes]) : head
}

export const message = (fields: Fields): string => JSON.stringify({ jsonrpc: '2.0', ...fields })

/** A request of 2026-07-28, as bytes. */
export function modernBytes(target: Target, method: string, params: Fields, fields: RequestFields = {}): Buffer {
  const body = message({ id: 1, method, params: { _meta: modernMeta(), ...params } })
  return requestBytes(target, { body, ...fields, headers: { ...modernHeaders(method, params), ...fields.headers } })
}

/** A path that serves what everybody may use. */
export const openPath = (chance: Chance): string => chance.pick(['/', '/', '/policed', '/t', '/t/open', '/stateless'])
