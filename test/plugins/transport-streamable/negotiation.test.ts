import { expect } from 'chai'
import fc from 'fast-check'
import { defineTool } from '../../../core/index.ts'
import { requestBytes, sendRaw } from '../../support/raw-http.ts'
import { legacy, modern, modernRequest, type RpcAnswer } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { caseCount } from '../../support/thorough.ts'

const echo = defineTool({ name: 'echo', handler: () => 'echo' })

let stateful: string
let stateless: string
before(async () => {
  const config = { toolsets: { all: [echo] }, routes: { '/': { toolsets: 'all' } } }
  stateful = (await startHost(config)).url
  stateless = (await startHost({ ...config, stateless: true })).url
})
after(stopHosts)

type Headers = Record<string, string | undefined>

/** The same headers on a request of each era. */
const inBothEras = (headers: Headers): Promise<RpcAnswer[]> =>
  Promise.all([
    modern(stateful, 'server/discover', {}, { headers }),
    legacy(stateless, 'ping', {}, { headers }),
    legacy(stateless, 'ping', {}, { headers, revision: '2025-06-18' }),
    legacy(stateless, 'ping', {}, { headers, revision: undefined }),
  ])

const statuses = async (headers: Headers) => (await inBothEras(headers)).map(({ status }) => status)

/** A request of 2026-07-28 with exactly these headers of its own: fetch adds an Accept where there is none. */
function sendExactly(headers: Headers) {
  const request = modernRequest('server/discover')
  return sendRaw(stateful, requestBytes(stateful, request.body, { headers: { ...request.headers, ...headers } }))
}

describe('Content negotiation: Accept', () => {
  const acceptable = [
    'application/json, text/event-stream',
    'text/event-stream,application/json',
    'TEXT/Event-Stream, Application/JSON',
    '*/*',
    'application/*, text/*',
    'application/json, text/*;q=0.1',
    'application/json;q=0.001, text/event-stream;q=1.0',
    'text/html, application/json, text/event-stream;q=0.5, image/png;q=0',
    'text/html;q=0, */*',
    'application/json; charset=utf-8, text/event-stream',
  ]
  for (const accept of acceptable) {
    it(`"${accept}" accepts JSON and event streams, in both eras`, async () => {
      expect(await statuses({ Accept: accept })).to.deep.equal([200, 200, 200, 200])
    })
  }

  const unacceptable = [
    'application/json',
    'text/event-stream',
    'application/*',
    'text/*',
    'text/html',
    'application/json, text/event-stream;q=0',
    'application/json;q=0, */*',
    'text/event-stream;q=0.000, */*;q=0.5',
    '*/*;q=0',
    'application/jsonp, text/event-streams',
    'x-application/json, x-text/event-stream',
    'text/html; note="application/json, text/event-stream"',
    'application/json text/event-stream',
    ', ;',
  ]
  for (const accept of unacceptable) {
    it(`"${accept}" is refused with 406 in both eras`, async () => {
      for (const { status, message } of await inBothEras({ Accept: accept })) {
        expect([status, message.error.code]).to.deep.equal([406, -32000])
        expect(message.error.message).to.include('application/json').and.include('text/event-stream')
      }
    })
  }

  it('missing accepts any media type in both eras', async () => {
    expect((await sendExactly({ Accept: undefined })).status).to.equal(200)
    const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    const old = await sendRaw(stateless, requestBytes(stateless, ping, { headers: { Accept: undefined } }))
    expect(old.status).to.equal(200)
  })

  it('empty is refused with 406', async () => {
    expect((await sendExactly({ Accept: '' })).status).to.equal(406)
  })

  it('sent as two headers is merged into one list', async () => {
    const { headers, body } = modernRequest('server/discover')
    const twice = { ...headers, Accept: ['application/json', 'text/event-stream'] }
    expect((await sendRaw(stateful, requestBytes(stateful, body, { headers: twice }))).status).to.equal(200)
  })

  it('is checked before Content-Type: 406 precedes 415', async () => {
    expect((await sendExactly({ Accept: 'text/html', 'Content-Type': 'text/plain' })).status).to.equal(406)
  })

  it('property: any Accept and Content-Type gets 200, 406 or 415', async () => {
    const token = fc.constantFrom(
      'application/json',
      'text/event-stream',
      '*/*',
      'text/*',
      'q=',
      ';',
      ',',
      '"',
      '=',
      '/',
    )
    const noise = fc.string({ unit: fc.constantFrom(...'abq;,=/*"\\ 01.-') })
    const value = fc.array(fc.oneof(token, noise), { maxLength: 8 }).map(parts => parts.join(''))
    await fc.assert(
      fc.asyncProperty(value, value, async (Accept, type) => {
        const { status } = await sendExactly({ Accept, 'Content-Type': type })
        expect([200, 406, 415]).to.include(status)
      }),
      { numRuns: caseCount(200, 15) },
    )
  })
})

describe('Content negotiation: Content-Type and Content-Encoding', () => {
  const json = [
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'application/json; charset="utf-8"',
    'application/json ; charset=utf8',
    'application/json;',
    'application/json; profile=x; charset=utf-8',
  ]
  for (const type of json) {
    it(`"${type}" is accepted as JSON`, async () => {
      expect(await statuses({ 'Content-Type': type })).to.deep.equal([200, 200, 200, 200])
    })
  }

  const other = [
    'text/plain',
    'text/json',
    'application/json-rpc',
    'application/vnd.api+json',
    'application/jsonx',
    'text/plain; x=application/json',
    'application/json, text/plain',
    'application/json; charset=iso-8859-1',
    'application/json; charset=utf-16',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
  ]
  for (const type of other) {
    it(`"${type}" is refused with 415`, async () => {
      for (const { status, message } of await inBothEras({ 'Content-Type': type })) {
        expect([status, message.error.code]).to.deep.equal([415, -32000])
      }
    })
  }

  it('missing or empty is refused with 415', async () => {
    for (const type of [undefined, '']) {
      const { status, message } = await sendExactly({ 'Content-Type': type })
      expect([status, message.error.code]).to.deep.equal([415, -32000])
    }
  })

  it('refuses compressed bodies with 415 and accepts identity', async () => {
    for (const encoding of ['gzip', 'deflate', 'br', 'zstd', 'gzip, identity']) {
      expect((await sendExactly({ 'Content-Encoding': encoding })).status, encoding).to.equal(415)
    }
    for (const encoding of ['identity', 'Identity']) {
      expect((await sendExactly({ 'Content-Encoding': encoding })).status, encoding).to.equal(200)
    }
  })
})
