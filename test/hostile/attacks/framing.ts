// Invalid HTTP framing: wrong chunk sizes and lengths, incomplete requests, expectations, upgrades, trailing bytes.
import { setTimeout as wait } from 'node:timers/promises'
import { type Headers, headerLines, message, modernHeaders, modernMeta, openPath } from '../requests.ts'
import type { Attack, Round } from '../round.ts'

const BODY = message({ id: 1, method: 'tools/list', params: { _meta: modernMeta() } })

function head(round: Round, headers: Headers): string {
  const all: Headers = {
    Host: round.target.host,
    Accept: 'application/json, text/event-stream',
    'Content-Type': 'application/json',
    ...modernHeaders('tools/list', {}),
    ...headers,
  }
  return `POST ${openPath(round.chance)} HTTP/1.1\r\n${headerLines(all).join('\r\n')}\r\n\r\n`
}

const CHUNKED = { 'Transfer-Encoding': 'chunked' }
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
const whole = (round: Round) => head(round, { 'Content-Length': String(BODY.length) }) + BODY

type Framing = (round: Round) => string

/** Each is one request, or what looks like one. */
const FRAMINGS: Readonly<Record<string, Framing>> = {
  'many small chunks': round => head(round, CHUNKED) + [...BODY].map(chunk).join('') + chunk(''),
  'a chunk extension': round =>
    `${head(round, CHUNKED)}${BODY.length.toString(16)};x=${'y'.repeat(round.chance.pick([10, 20_000]))}\r\n${BODY}\r\n0\r\n\r\n`,
  'a chunk of wrong size': round => `${head(round, CHUNKED)}${(BODY.length - 3).toString(16)}\r\n${BODY}\r\n0\r\n\r\n`,
  'a chunk size that is none': round =>
    `${head(round, CHUNKED)}${round.chance.pick(['zz', '-1', '0x10', 'ffffffffffffffff1', ' 5', '5 '])}\r\n${BODY}\r\n0\r\n\r\n`,
  trailers: round =>
    `${head(round, CHUNKED)}${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\nAuthorization: x\r\nX-Trailer: ${'y'.repeat(5_000)}\r\n\r\n`,
  'no end of chunks': round => head(round, CHUNKED) + chunk(BODY),
  'both length and chunks': round => head(round, { ...CHUNKED, 'Content-Length': '5' }) + chunk(BODY) + chunk(''),
  'two lengths': round => head(round, { 'Content-Length': [String(BODY.length), '5'] }) + BODY,
  'a length that is none': round =>
    head(round, {
      'Content-Length': round.chance.pick(['-1', '+5', '1e3', '0x10', '5, 5', '99999999999999999999', ' ', '']),
    }) + BODY,
  'a length too large': round =>
    head(round, { 'Content-Length': round.chance.pick(['4194305', '9007199254740993']) }) + BODY,
  'a length too short': round => head(round, { 'Content-Length': String(BODY.length - 10) }) + BODY,
  'a length too long': round => head(round, { 'Content-Length': String(BODY.length + 100) }) + BODY,
  'an odd transfer encoding': round =>
    head(round, {
      'Transfer-Encoding': round.chance.pick([
        'gzip',
        'chunked, gzip',
        'gzip, chunked',
        'xchunked',
        ' chunked',
        'identity',
      ]),
    }) +
    chunk(BODY) +
    chunk(''),
  'a bare LF': round => whole(round).replaceAll('\r\n', '\n'),
  'a bare CR': round => whole(round).replace('\r\n', '\r'),
  'empty lines before': round => '\r\n'.repeat(round.chance.pick([1, 10, 1_000])) + whole(round),
  'bytes behind the end': round => whole(round) + round.chance.pick(['x', '\0\0', '{}', '\r\n\r\n', 'GET', 'G']),
  'an upgrade': round =>
    head(round, {
      Connection: 'Upgrade, HTTP2-Settings',
      Upgrade: round.chance.pick(['websocket', 'h2c', 'TLS/1.0']),
      'HTTP2-Settings': 'AAMAAABkAAQAAP__',
      'Content-Length': String(BODY.length),
    }) + BODY,
  'the preface of HTTP/2': () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'a TLS hello': () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  'half a head': round => whole(round).slice(0, round.chance.between(1, 150)),
  'half a body': round => whole(round).slice(0, -round.chance.between(1, BODY.length)),
  noise: ({ chance }) =>
    Array.from({ length: chance.between(1, 2_000) }, () => String.fromCharCode(chance.below(256))).join(''),
  'an expectation that is none': round =>
    head(round, {
      Expect: round.chance.pick(['200-ok', '', '100-continue, x']),
      'Content-Length': String(BODY.length),
    }) + BODY,
  'a body on GET': round => whole(round).replace('POST', 'GET'),
  'no host': round => whole(round).replace(/Host: [^\r]*\r\n/, ''),
  'HTTP/1.0': round => whole(round).replace('HTTP/1.1', 'HTTP/1.0'),
}

const NAMES = Object.keys(FRAMINGS)

const framing: Attack = {
  kind: 'framing',
  about: 'chunks, lengths and heads that lie; halves, upgrades, noise',
  lanes: 2,
  async run(round) {
    const { chance } = round
    for (let request = 0; request < 6; request++) {
      const connection = await round.connect('anonymous')
      const bytes = FRAMINGS[chance.pick(NAMES)]?.(round) ?? ''
      // In parts, so that what is parsed is parsed across their borders.
      const cut = chance.oneIn(3) ? chance.below(bytes.length) : 0
      if (cut > 0) {
        connection.send(bytes.slice(0, cut), 0)
        await wait(2)
      }
      connection.send(bytes.slice(cut))
      await connection.until(() => connection.heads.length > 0, 100)
      chance.pick([
        () => connection.endSending(),
        () => connection.reset(),
        () => connection.drop(),
        () => connection.drop(),
      ])()
    }
  },
}

/** The body comes only when the host says that it wants it; or never. */
const expecting: Attack = {
  kind: 'expect',
  about: 'Expect: 100-continue, with and without the body',
  pause: 30,
  async run(round) {
    const { chance } = round
    const connection = await round.connect('anonymous')
    const length = chance.pick([String(BODY.length), '5000000', '0'])
    connection.send(head(round, { Expect: '100-continue', 'Content-Length': length }), 0)
    await connection.until(() => connection.text.includes('HTTP/1.1 '), 500)
    if (chance.oneIn(3)) return connection.drop()
    connection.send(BODY)
    if (length === String(BODY.length)) await round.answers(connection, 1)
  },
}

export const framingAttacks: readonly Attack[] = [framing, expecting]
