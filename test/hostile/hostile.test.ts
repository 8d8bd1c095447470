// Tests the parts of `npm run hostile`: response parser, fault detection and replay. test/slow/hostile.slow.ts tests it
// with planted faults.

import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { expect } from 'chai'
import { startIssuer, stopIssuers } from '../support/test-issuer.ts'
import { ATTACKS } from './attacks/index.ts'
import { attacksOf } from './hostile.ts'
import { createChance } from './random.ts'
import { createWatcher } from './response-checks.ts'
import { type Answer, AnswerParser, type Head } from './response-parser.ts'
import { runRound } from './round.ts'
import { Tally } from './tally.ts'
import { createMarkers, createTarget, type Identity } from './target.ts'

function parse(parts: readonly string[], end = true) {
  const heads: Head[] = []
  const answers: Answer[] = []
  const parser = new AnswerParser({ head: head => heads.push(head), answer: answer => answers.push(answer) })
  for (const part of parts) parser.push(Buffer.from(part, 'latin1'))
  if (end) parser.end()
  return { heads, seen: answers.map(({ status, body, broken }) => [status, body.toString(), broken]) }
}

const FIXED = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfixed'
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nchu\r\n4\r\nnked\r\n0\r\n\r\n'
const NONE = 'HTTP/1.1 204 No Content\r\n\r\n'
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'
const REST = 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nrest'

describe('HTTP response parser', () => {
  const all = [FIXED, CONTINUE, CHUNKED, NONE, FIXED, REST]
  const expected = [
    [200, 'fixed', false],
    [200, 'chunked', false],
    [204, '', false],
    [200, 'fixed', false],
    [400, 'rest', false],
  ]

  it('separates pipelined responses at any chunk boundary', () => {
    const text = all.join('')
    expect(parse([text]).seen).to.deep.equal(expected)
    expect(parse([...text]).seen).to.deep.equal(expected)
  })

  it('marks a response as truncated when the connection ends early', () => {
    expect(parse([FIXED.slice(0, -2)]).seen).to.deep.equal([[200, 'fix', true]])
    expect(parse([CHUNKED.slice(0, -5)]).seen).to.deep.equal([[200, 'chunked', true]])
    expect(parse(['HTTP/1.1 20']).seen).to.deep.equal([[Number.NaN, '', true]])
  })
})

describe('fault detection in responses', () => {
  const markers = createMarkers(3)

  /** The kinds of faults that an answer makes. */
  function judge(text: string, who: Identity = 'anonymous'): string[] {
    const tally = new Tally()
    const watcher = createWatcher(tally, markers, 'some:1', who)
    const parser = new AnswerParser(watcher)
    watcher.sent(1, Buffer.from('what was sent'))
    watcher.bytes(text)
    parser.push(Buffer.from(text))
    parser.end()
    expect(tally.faults.map(({ rounds, request }) => [...rounds, request])).to.deep.equal(
      tally.faults.map(() => ['some:1', '"what was sent"']),
    )
    return [...tally.faultCounts.keys()]
  }

  const answer = (status: number, body: string, ...headers: string[]) =>
    [`HTTP/1.1 ${status} X`, `Content-Length: ${Buffer.byteLength(body)}`, ...headers, '', body].join('\r\n')
  const json = (status: number, body: unknown, ...headers: string[]) =>
    answer(status, JSON.stringify(body), 'Content-Type: application/json', ...headers)
  const internal = { jsonrpc: '2.0', id: 1, error: { code: -32603, message: 'Internal error' } }
  const lost = { jsonrpc: '2.0', id: 1, error: { code: -32603, message: 'The call took too long' } }

  it('accepts valid responses', () => {
    expect(judge(json(200, { jsonrpc: '2.0', id: 1, result: {} }))).to.deep.equal([])
    expect(judge(json(200, lost))).to.deep.equal([])
    expect(judge(json(503, lost, 'Retry-After: 1'))).to.deep.equal([])
    expect(
      judge(answer(200, 'event: message\ndata: {"id":1}\n\n: keep-alive\n\n', 'Content-Type: text/event-stream')),
    ).to.deep.equal([])
    expect(judge(json(200, { text: markers.alice }), 'alice')).to.deep.equal([])
  })

  for (const [what, text, kind] of [
    ['a 500', answer(500, ''), 'serverError'],
    ['a 503 without Retry-After', answer(503, ''), 'serverError'],
    ['an internal error', json(200, internal), 'internal'],
    [
      'an internal error on a stream',
      answer(200, `data: ${JSON.stringify(internal)}\n\n`, 'Content-Type: text/event-stream'),
      'internal',
    ],
    ['data of another user', json(200, { text: markers.alice }), 'secret'],
    ['data of a guarded route', answer(200, markers.guarded), 'secret'],
    ['invalid JSON', answer(200, '{', 'Content-Type: application/json'), 'malformed'],
    ['an invalid event', answer(200, 'data: {"a"\n\n', 'Content-Type: text/event-stream'), 'malformed'],
    ['an injected line in a stream', answer(200, 'data: {}\nevil\n\n', 'Content-Type: text/event-stream'), 'malformed'],
    ['an injected header', answer(200, '', 'X-Smuggled: 1'), 'malformed'],
    ['a stack trace', answer(500, 'Error: x\n    at f (file:///a.ts:1:1)'), 'malformed'],
    ['an upgrade', answer(101, ''), 'malformed'],
    ['a response that is not HTTP', 'nonsense\r\n\r\n', 'malformed'],
  ] as const) {
    it(`detects ${what}`, () => {
      expect(judge(text)).to.include(kind)
    })
  }
})

describe('attack rounds', () => {
  after(stopIssuers)

  it('send the same bytes for the same seed, kind and number', async () => {
    const sent: Buffer[] = []
    const server = createServer(socket => {
      socket.on('error', () => undefined)
      socket.on('data', data => {
        sent.push(data)
        socket.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
      })
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const issuer = await startIssuer()
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const target = createTarget(url, issuer, createMarkers(1))
    async function play(kind: string, index: number, seed: number) {
      sent.length = 0
      const tally = new Tally()
      for (const attack of attacksOf([kind])) {
        await runRound({ attack, index, seed, target, tally, over: () => false, answerLimit: 5_000 })
      }
      expect(tally.faults).to.deep.equal([])
      return Buffer.concat(sent).toString('latin1')
    }
    for (const kind of ['messages-modern', 'headers', 'targets', 'documents', 'messages-initialize']) {
      const first = await play(kind, 3, 7)
      expect(first.length, kind).to.be.greaterThan(100)
      expect(await play(kind, 3, 7), kind).to.equal(first)
      expect(await play(kind, 4, 7), kind).not.to.equal(first)
      expect(await play(kind, 3, 8), kind).not.to.equal(first)
    }
    await new Promise(resolve => server.close(resolve))
  })

  it('have a unique kind name', () => {
    const kinds = ATTACKS.map(({ kind }) => kind)
    expect(new Set(kinds).size).to.equal(kinds.length)
    expect(() => attacksOf(['nope'])).to.throw('there is no kind "nope"')
  })

  it('derive their random numbers from the whole name', () => {
    const numbers = ['a:1', 'a:2', 'b:1'].map(name => createChance(1, name).below(1e9))
    expect(new Set(numbers).size).to.equal(3)
  })
})
