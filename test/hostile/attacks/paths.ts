// Request targets: every spelling of guarded paths, public documents by unusual names, and targets that are no path.
import type { Connection } from '../connection.ts'
import {
  headerLines,
  initializeParams,
  message,
  modernBytes,
  modernHeaders,
  modernMeta,
  requestBytes,
} from '../requests.ts'
import type { Attack, Round } from '../round.ts'
import type { Identity } from '../target.ts'

const GUARDED = ['/guarded', '/guarded/stateless', '/t/vault', '/u/vault', '/u/open', '/u']
const SUFFIXES = ['', '', '/sse', '/message', '/']

/** Another way to write a character of a path. */
function encodeSome(path: string, { chance }: Round): string {
  return [...path]
    .map(character => {
      if (!chance.oneIn(5)) return character
      const code = character.charCodeAt(0).toString(16).padStart(2, '0')
      return `%${chance.pick([code, code.toUpperCase(), `25${code}`])}`
    })
    .join('')
}

function respell(path: string, round: Round): string {
  const { chance } = round
  let spelled = path
  for (let change = chance.between(1, 2); change > 0; change--) {
    const kind = chance.below(11)
    if (kind <= 3) spelled = encodeSome(spelled, round)
    else if (kind === 4)
      spelled += chance.pick(['/', '//', '/.', '/./', '/..', '%2f', '/%2e', ';', '?', '?x=1', '#', '%00', '%20', '.'])
    else if (kind === 5) spelled = spelled.replaceAll('/', chance.pick(['//', '/./', '/x/../', '\\', '%5c', '%2F']))
    else if (kind === 6) spelled = spelled.toUpperCase()
    else if (kind === 7) spelled = `${chance.pick(['/t/..', '//', '/.', '/t/open/..', '/%2e%2e'])}${spelled}`
    else if (kind === 8)
      spelled = `http://${chance.pick([round.target.host, 'evil.example', 'a:b@localhost', '[::1]'])}${spelled}`
    else if (kind === 9)
      spelled = spelled.replace(
        'vault',
        chance.pick(['vau%6ct', 'vault,open', ':category', 'Vault', 'vault%20', 'ｖault']),
      )
    else spelled = spelled.replace(/^\/[tu]/, chance.pick(['/%74', '/t', '/T', '/t/']))
  }
  return spelled
}

/** A session opened at this spelling is asked for what it may not show. */
async function lookInside(round: Round, who: Identity, path: string) {
  const connection = await round.connect(who)
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
  connection.send(requestBytes(round.target, { path, who, body: message({ id: 1, method: 'initialize', params }) }))
  await round.heads(connection, 1)
  await connection.until(() => connection.answers.length > 0, 300)
  const id = connection.answers[0]?.headers.get('mcp-session-id')
  if (id === undefined) return
  for (const method of ['tools/list', 'prompts/list', 'resources/list']) {
    const before = connection.answers.length
    const headers = { 'Mcp-Session-Id': id, 'MCP-Protocol-Version': '2025-11-25' }
    connection.send(requestBytes(round.target, { path, who, headers, body: message({ id: 2, method }) }))
    await round.answers(connection, before + 1)
  }
}

/** The address that an SSE stream names, where there is one. */
async function endpointOf(connection: Connection): Promise<string | undefined> {
  await connection.until(() => /data: (\S+)\n\n/.test(connection.text), 300)
  return /data: (\S+)\n\n/.exec(connection.text)?.[1]
}

async function lookOverSse(round: Round, who: Identity, path: string) {
  const stream = await round.connect(who)
  stream.send(requestBytes(round.target, { verb: 'GET', path, who }))
  await round.heads(stream, 1)
  const endpoint = await endpointOf(stream)
  if (endpoint === undefined) return
  const connection = await round.connect(who)
  for (const [id, method, params] of [
    [1, 'initialize', initializeParams('2024-11-05')],
    [2, 'tools/list', {}],
  ] as const) {
    const before = connection.answers.length
    connection.send(requestBytes(round.target, { path: endpoint, who, body: message({ id, method, params }) }))
    await round.answers(connection, before + 1)
  }
  await stream.until(() => stream.text.includes('"id":2'), 300)
}

const guarded: Attack = {
  kind: 'guarded-paths',
  about: 'every spelling of guarded places, without the right to them',
  lanes: 2,
  async run(round) {
    const { chance, target } = round
    const who = chance.pick<Identity>(['anonymous', 'mallory'])
    // The open neighbours of guarded places: what is built for the ones must not be shown by the others.
    if (chance.oneIn(8)) return lookInside(round, who, chance.pick(['/t', '/t', '/t/open', '/policed']))
    const suffix = chance.pick(SUFFIXES)
    const plain = `${chance.pick(GUARDED)}${suffix}`
    const path = chance.oneIn(10) ? plain : respell(plain, round)
    if (suffix === '/sse') return lookOverSse(round, who, path)
    const connection = await round.connect(who)
    for (const name of ['open_vault', 'purge', 'contributed']) {
      const before = connection.answers.length
      connection.send(modernBytes(target, 'tools/call', { name, arguments: {} }, { path, who }))
      await round.heads(connection, before + 1)
      if (!(await connection.until(() => connection.answers.length > before, 300)) || connection.closed) break
    }
    await lookInside(round, who, path)
  },
}

const DOCUMENTS = [
  '/health',
  '/.well-known/oauth-protected-resource',
  '/.well-known/oauth-protected-resource/guarded',
  '/.well-known/oauth-protected-resource/t/vault',
  '/.well-known/oauth-protected-resource/u/open',
]

const documents: Attack = {
  kind: 'documents',
  about: 'health and metadata by odd spellings and verbs',
  async run(round) {
    const { chance, target } = round
    for (let request = 0; request < 8; request++) {
      const connection = await round.connect('anonymous')
      const plain = chance.pick(DOCUMENTS)
      const verb = chance.pick(['GET', 'GET', 'HEAD', 'POST', 'OPTIONS', 'DELETE'])
      if (verb === 'HEAD') connection.expectNoBody()
      const headers = {
        Origin: chance.pick([undefined, 'https://evil.example']),
        Accept: chance.pick(['*/*', 'text/html']),
      }
      const path = chance.oneIn(4) ? plain : respell(plain, round)
      connection.send(requestBytes(target, { verb, path, headers, ...(verb === 'POST' && { body: '{}' }) }))
      await round.heads(connection, 1)
      connection.drop()
    }
  },
}

const TARGETS = [
  '*',
  '',
  '/',
  '//',
  '///',
  '?',
  '#',
  'x',
  'foo://bar',
  'http://',
  'http://[',
  'http://[/',
  'http://?x',
  'http://a b/',
  'http:///guarded',
  'http://%zz/',
  'https://evil.example:99999/guarded',
  'http://user:pass@localhost/guarded',
  'localhost:80',
  '127.0.0.1:443',
  '/%',
  '/%zz',
  '/%c0%af',
  '/%ff',
  '/t/%',
  '/t/%2f',
  '/t/%00',
  '/t/__proto__',
  '/t/constructor',
  '/t/toString',
  '/u/__proto__',
  '/t/..%2fguarded',
  '/\u00e9',
  '/message?sessionId=a&sessionId=b',
  '/message?sessionId[]=a',
  '/message?sessionId=%00',
  '/message?%',
  '/?access_token=x',
  'javascript:alert(1)',
  'file:///etc/passwd',
  'mailto:a@b',
]

const targets: Attack = {
  kind: 'targets',
  about: 'absolute, authority, asterisk and broken request targets',
  async run(round) {
    const { chance, target } = round
    const body = message({ id: 1, method: 'tools/list', params: { _meta: modernMeta() } })
    for (let request = 0; request < 8; request++) {
      const connection = await round.connect('anonymous')
      const verb = chance.pick(['GET', 'POST', 'OPTIONS', 'DELETE', 'CONNECT', 'HEAD'])
      if (verb === 'HEAD') connection.expectNoBody()
      const path = chance.oneIn(8) ? `/${'a/'.repeat(chance.pick([100, 3_000, 9_000]))}` : chance.pick(TARGETS)
      const lines = headerLines({
        Host: chance.pick([target.host, target.host, 'evil.example', '']),
        Accept: 'application/json, text/event-stream',
        Connection: 'close',
        ...(verb === 'POST' && { 'Content-Type': 'application/json', 'Content-Length': String(body.length) }),
        ...modernHeaders('tools/list', {}),
      })
      const version = chance.pick(['HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0', 'HTTP/0.9', 'HTTP/2.0', 'http/1.1'])
      connection.send(`${verb} ${path} ${version}\r\n${lines.join('\r\n')}\r\n\r\n${verb === 'POST' ? body : ''}`)
      await round.heads(connection, 1)
      connection.drop()
    }
  },
}

export const pathAttacks: readonly Attack[] = [guarded, documents, targets]
