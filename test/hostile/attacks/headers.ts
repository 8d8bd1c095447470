// Valid requests with invalid headers: repeated, unusual, long, with forbidden bytes; and invalid tokens.
import { createHmac } from 'node:crypto'
import { encode, inSeconds, signToken } from '../../support/test-issuer.ts'
import { type Headers, headerLines, METHODS, message, modernHeaders, modernMeta, openPath } from '../requests.ts'
import type { Attack, Round } from '../round.ts'
import { AUDIENCE } from '../target.ts'
import { hostileHeader } from '../values.ts'

const NAMES = [
  'Accept',
  'Content-Type',
  'Content-Encoding',
  'Origin',
  'Host',
  'MCP-Protocol-Version',
  'Mcp-Method',
  'Mcp-Name',
  'Mcp-Session-Id',
  'Mcp-Param-Region',
  'Mcp-Param-Vault',
  'Last-Event-ID',
  'Authorization',
  'X-Forwarded-For',
  'X-Forwarded-Host',
  'Connection',
  'Cookie',
  'Range',
  'If-None-Match',
  'Access-Control-Request-Method',
  'X-HTTP-Method-Override',
  '__proto__',
]
const COMMANDS = ['POST', 'POST', 'POST', 'GET', 'DELETE', 'OPTIONS', 'HEAD', 'PUT', 'PATCH', 'TRACE', 'PROPFIND']

const spoiled: Attack = {
  kind: 'headers',
  about: 'doubled, odd, long and forbidden headers',
  async run(round) {
    const { chance, target } = round
    for (let request = 0; request < 12; request++) {
      const [method, params] = chance.pick(METHODS)
      const body = message({ id: 1, method, params: { _meta: modernMeta(), ...params } })
      const verb = chance.pick(COMMANDS)
      const headers: Headers = {
        Host: target.host,
        Accept: 'application/json, text/event-stream',
        'Content-Type': 'application/json',
        'Content-Length': String(Buffer.byteLength(body)),
        ...modernHeaders(method, params),
      }
      for (let change = chance.between(1, 3); change > 0; change--) {
        const name = chance.pick(NAMES)
        const kind = chance.below(4)
        if (kind === 0) headers[name] = undefined
        else if (kind === 1) headers[name] = [String(headers[name] ?? 'x'), hostileHeader(chance)]
        else headers[name] = hostileHeader(chance)
      }
      const lines = headerLines(headers)
      if (chance.oneIn(20))
        lines.push(...Array.from({ length: chance.pick([50, 1_500]) }, (_, index) => `X-${index}: y`))
      if (chance.oneIn(20)) lines.push(chance.pick([': no name', 'no colon', 'spaced : x', ' folded', 'Ünicode: x']))
      const connection = await round.connect('anonymous')
      if (verb === 'HEAD') connection.expectNoBody()
      connection.send(`${verb} ${openPath(chance)} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`)
      await round.heads(connection, 1)
      connection.drop()
    }
  },
}

/** Tokens that must not pass, and what else may stand in an Authorization header. */
function badAuthorization({ chance, target: { issuer } }: Round): string | readonly string[] {
  const [key] = issuer.keys
  if (!key) return 'none'
  const claims = (changes: Record<string, unknown> = {}) =>
    issuer.claims(AUDIENCE, { sub: 'alice', scope: 'mcp.basic mcp.admin', ...changes })
  const good = signToken(claims(), key)
  const [head = '', body = '', signature = ''] = good.split('.')
  const hs256 = (secret: string) => {
    const text = `${encode({ alg: 'HS256', typ: 'at+jwt', kid: key.kid })}.${body}`
    return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
  }
  const kinds: ReadonlyArray<() => string | readonly string[]> = [
    () => `Bearer ${encode({ alg: 'none' })}.${body}.`,
    () => `Bearer ${encode({ alg: 'NonE', typ: 'at+jwt' })}.${body}.${signature}`,
    () => `Bearer ${hs256(key.publicKey.export({ format: 'pem', type: 'spki' }).toString())}`,
    () => `Bearer ${signToken(claims({ exp: inSeconds(-600) }), key)}`,
    () => `Bearer ${signToken(claims({ aud: 'https://other.example' }), key)}`,
    () => `Bearer ${signToken(claims({ iss: 'https://evil.example' }), key)}`,
    () => `Bearer ${signToken(claims({ exp: '9999999999' }), key)}`,
    () => `Bearer ${signToken(claims(), key, { crit: ['x'], x: 1 })}`,
    () => `Bearer ${signToken(claims(), key, { kid: chance.pick(['other', '../../x', '', 'x'.repeat(5_000)]) })}`,
    () => `Bearer ${signToken(claims({ nonce: 'x' }), key)}`,
    () => `Bearer ${signToken(`{"a":${'['.repeat(2_000)}}`, key)}`,
    () => `Bearer ${signToken(claims({ scope: ['a', { b: 1 }], roles: { a: 1 } }), key, { typ: 'JWT', alg: 'none' })}`,
    // Always another one: bytes set to what they may be already would be the right token once in 256 times.
    () => `Bearer ${head}.${body}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`,
    () => `Bearer ${head}.${encode({ ...claims(), sub: 'steady' })}.${signature}`,
    () => `Bearer ${'a.'.repeat(chance.pick([3, 1_000, 6_000]))}`,
    () => `Bearer ${'x'.repeat(chance.pick([100, 12_289, 15_000]))}`,
    () => [`Bearer ${good}`, `Bearer ${head}.${body}.x`],
    () =>
      chance.pick([
        'Basic YTpi',
        'Bearer',
        'Bearer ',
        'bearer\tx',
        'Bearer a b',
        'DPoP x',
        `Bearer ${good}.x`,
        'Bearer ..',
      ]),
  ]
  return chance.pick(kinds)()
}

const tokens: Attack = {
  kind: 'tokens',
  about: 'forged, spoiled, huge and doubled tokens at guarded places',
  pause: 20,
  async run(round) {
    const { chance, target } = round
    const connection = await round.connect('anonymous')
    const path = chance.pick([
      '/guarded',
      '/guarded/stateless',
      '/t/vault',
      '/u/vault',
      '/guarded/sse',
      '/policed',
      '/u',
    ])
    const verb = path.endsWith('/sse') ? 'GET' : 'POST'
    const params = { name: path === '/policed' ? 'purge' : 'open_vault', arguments: {} }
    const body = message({ id: 1, method: 'tools/call', params: { _meta: modernMeta(), ...params } })
    const headers: Headers = {
      Host: target.host,
      Accept: 'application/json, text/event-stream',
      Authorization: badAuthorization(round),
      ...modernHeaders('tools/call', params),
      ...(verb === 'POST' && { 'Content-Type': 'application/json', 'Content-Length': String(Buffer.byteLength(body)) }),
    }
    connection.send(
      `${verb} ${path} HTTP/1.1\r\n${headerLines(headers).join('\r\n')}\r\n\r\n${verb === 'POST' ? body : ''}`,
    )
    await round.heads(connection, 1)
    await connection.until(() => connection.answers.length > 0, 200)
  },
}

export const headerAttacks: readonly Attack[] = [spoiled, tokens]
