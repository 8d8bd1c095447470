// Retries, time limits, connections and queues of the requests to an API.

import type { ServerResponse } from 'node:http'
import { expect } from 'chai'
import type { CallToolResult } from '../../../core/index.ts'
import { eventually } from '../../support/eventually.ts'
import { createGate } from '../../support/gate.ts'
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts'
import { type Api, contextOf, type Given, operationAt, requesterOf, resultOf, startApi, textOf } from './api.ts'

/** The time limit of the call and the pause before the next attempt are pending. */
const isWaiting = (clock: ManualClock) => eventually('a call waits', () => clock.pending().length === 2)

const user = (subject: string) => ({ issuer: 'https://idp.example', subject, claims: {} }) as never

describe('Requests to the API of a document', () => {
  let api: Api
  const opened: (() => Promise<void>)[] = []

  beforeEach(async () => {
    api = await startApi()
  })
  afterEach(async () => {
    await Promise.all(opened.splice(0).map(close => close()))
    await api[Symbol.asyncDispose]()
  })

  function open(options: Given = {}) {
    const { request, lines } = requesterOf(api, options)
    opened.push(() => request.close())
    return {
      request,
      lines,
      call: (method: 'get' | 'head' | 'post' | 'put' | 'delete' = 'get', ctx = contextOf()): Promise<CallToolResult> =>
        resultOf(request(operationAt(api.url, { method }), {}, ctx)),
    }
  }

  const answers = (...statuses: readonly (number | 'drop')[]): Api['answer'] => {
    const left = [...statuses]
    return (_, res) => {
      const status = left.shift() ?? 200
      if (status === 'drop') res.destroy()
      else res.writeHead(status).end(String(status))
    }
  }

  describe('are repeated', () => {
    for (const method of ['get', 'head'] as const) {
      for (const status of [429, 502, 503, 504, 'drop'] as const) {
        it(`for ${method} after ${status}`, async () => {
          const clock = createManualClock()
          api.answer = answers(status, status)
          const result = open({ clock, timeout: 60_000 }).call(method)
          for (const pause of [375, 750]) {
            await isWaiting(clock)
            const [due = 0] = clock.pending()
            expect(due).to.be.within((pause * 2) / 3, pause)
            await clock.advance(due)
          }
          expect(await result).not.to.have.property('isError')
          expect(api.requests).to.have.length(3)
          expect(clock.pending()).to.deep.equal([])
        })
      }
    }

    it('after the time of Retry-After', async () => {
      const clock = createManualClock()
      const date = new Date(Math.ceil(clock.now() / 1_000) * 1_000 + 20_000).toUTCString()
      const given = ['7', date]
      api.answer = (_, res) => {
        const retryAfter = given.shift()
        res.writeHead(retryAfter ? 503 : 200, retryAfter ? { 'Retry-After': retryAfter } : {}).end()
      }
      const result = open({ clock, timeout: 60_000 }).call()
      await isWaiting(clock)
      expect(clock.pending()[0]).to.equal(7_000)
      await clock.advance(7_000)
      await isWaiting(clock)
      expect(clock.pending()[0]).to.be.within(12_000, 14_000)
      await clock.advance(14_000)
      expect(textOf(await result)).to.equal('HTTP 200 OK')
    })

    it('no more than `retries` times', async () => {
      const clock = createManualClock()
      api.answer = answers(503, 503, 503)
      const result = open({ clock, retries: 1, timeout: 60_000 }).call()
      await isWaiting(clock)
      await clock.advance(400)
      expect(textOf(await result)).to.equal('HTTP 503 Service Unavailable\n503')
      expect(api.requests).to.have.length(2)
    })

    it('not if Retry-After is beyond the time limit', async () => {
      api.answer = (_, res) => res.writeHead(429, { 'Retry-After': '3600' }).end()
      expect(textOf(await open().call())).to.equal('HTTP 429 Too Many Requests\nRetry-After: 3600')
      expect(api.requests).to.have.length(1)
    })

    for (const method of ['post', 'put', 'delete'] as const) {
      for (const status of [429, 503, 'drop'] as const) {
        it(`never for ${method}: ${status}`, async () => {
          api.answer = answers(status)
          expect(await open().call(method)).to.have.property('isError', true)
          expect(api.requests).to.have.length(1)
        })
      }
    }

    for (const status of [400, 401, 404, 408, 500, 501]) {
      it(`not after ${status}`, async () => {
        api.answer = answers(status)
        expect(await open().call()).to.have.property('isError', true)
        expect(api.requests).to.have.length(1)
      })
    }
  })

  describe('end', () => {
    it('at the time limit, while the API is silent', async () => {
      const clock = createManualClock()
      const closed = createGate()
      api.answer = (_, res) => void res.on('close', closed.open)
      const result = open({ clock, timeout: 30_000 }).call()
      await eventually('a request has arrived', () => api.requests.length === 1)
      await clock.advance(30_000)
      expect(textOf(await result)).to.equal('The API did not respond within 30 s.')
      await closed.opened
    })

    it('at the time limit, between two attempts', async () => {
      const clock = createManualClock()
      api.answer = (_, res) => res.writeHead(503, { 'Retry-After': '20' }).end()
      const result = open({ clock, timeout: 30_000 }).call()
      await isWaiting(clock)
      await clock.advance(20_000)
      expect(textOf(await result)).to.equal('HTTP 503 Service Unavailable\nRetry-After: 20')
      expect(clock.pending()).to.deep.equal([])
    })

    it('when the call is cancelled, before, while and after they are sent', async () => {
      const closed = createGate()
      api.answer = (_, res) => void res.on('close', closed.open)
      const { call } = open({ concurrency: 1 })
      const [first, second, third] = [new AbortController(), new AbortController(), new AbortController()]
      third.abort()
      const results = [first, second].map(({ signal }) => call('post', contextOf({ signal })))
      await eventually('a request has arrived', () => api.requests.length === 1)
      second.abort()
      expect(textOf((await results[1]) as CallToolResult)).to.equal('The call was cancelled.')
      first.abort()
      expect(textOf((await results[0]) as CallToolResult)).to.equal('The call was cancelled.')
      await closed.opened
      expect(textOf(await call('post', contextOf({ signal: third.signal })))).to.equal('The call was cancelled.')
      expect(api.requests).to.have.length(1)
    })

    it('with a warning not to repeat a request that the API may have processed', async () => {
      const warning = /may have processed the request/
      api.answer = answers('drop', 'drop')
      expect(textOf(await open({ retries: 0 }).call('post'))).to.match(warning)
      expect(textOf(await open({ retries: 0 }).call('get'))).not.to.match(warning)
      const clock = createManualClock()
      api.answer = () => undefined
      const late = open({ clock, timeout: 30_000 }).call('post')
      const before = api.requests.length
      await eventually('a request has arrived', () => api.requests.length >= before && clock.pending().length > 0)
      await clock.advance(30_000)
      expect(textOf(await late)).to.match(warning)
    })

    it('with the target of a redirect that cannot be reached, and a log line for refused credentials', async () => {
      const gone = await startApi()
      await gone[Symbol.asyncDispose]()
      api.answer = (_, res) => res.writeHead(302, { location: `${gone.url}/login` }).end()
      const redirected = open({ retries: 0, allowHosts: [api.host, gone.host] })
      expect(textOf(await redirected.call('get'))).to.include(`redirects to ${gone.url}, which cannot be reached`)
      api.answer = answers(401)
      const { lines, call } = open()
      await call()
      expect(lines.map(({ fields }) => Reflect.get(fields, 'code'))).to.deep.equal(['MH3460'])
    })

    it('when the requester is closed', async () => {
      api.answer = () => undefined
      const { request, call } = open()
      const result = call('post')
      await eventually('a request has arrived', () => api.requests.length === 1)
      await request.close()
      expect(await result).to.have.property('isError', true)
    })
  })

  it('reuse connections', async () => {
    const { call } = open()
    for (let count = 0; count < 20; count++) await call(count % 2 === 0 ? 'get' : 'post')
    // A call can begin before the connection of the previous one is idle.
    expect(api.connections).to.be.at.most(2)
  })

  it('share `concurrency` slots fairly between callers', async () => {
    const waiting: ServerResponse[] = []
    const order: string[] = []
    api.answer = (_, res) => void waiting.push(res)
    const { call } = open({ concurrency: 2 })
    const calls = ['a', 'a', 'a', 'a', 'b'].map(async subject => {
      await call('get', contextOf({ user: user(subject) }))
      order.push(subject)
    })
    for (let count = 1; count <= calls.length; count++) {
      await eventually('a response is due', () => waiting.length > 0)
      expect(api.requests.length).to.be.at.most(count + 1)
      waiting.shift()?.end()
      await eventually('a call has ended', () => order.length === count)
    }
    await Promise.all(calls)
    expect(order.indexOf('b')).to.be.below(3)
    expect(api.connections).to.be.at.most(2)
  })

  it('have configured and forwarded headers, and no other of the caller', async () => {
    const received = {
      authorization: 'Bearer of-the-caller',
      cookie: 'session=of-the-caller',
      'x-request-id': '4711',
      'accept-language': 'de',
    }
    const { call } = open({
      headers: { 'X-Tenant': 'acme', 'X-Fresh': async () => 'now\n' },
      forwardHeaders: ['x-request-id'],
    })
    await call('get', contextOf({ headers: received }))
    const { host, connection, ...sent } = api.requests[0]?.headers ?? {}
    expect(host).to.equal(api.host)
    expect(connection).to.equal('keep-alive')
    expect(sent).to.deep.equal({
      accept: 'application/json',
      'accept-encoding': 'gzip, deflate, br',
      'user-agent': 'mcp-host',
      'x-tenant': 'acme',
      'x-fresh': 'now',
      'x-request-id': '4711',
    })
  })

  it('accept the media types of the responses, JSON first', async () => {
    const { request } = open()
    const accepts = ['text/csv', 'application/vnd.x+json', 'application/json']
    await request(operationAt(api.url, { accepts }), {}, contextOf())
    await request(operationAt(api.url, { accepts: [] }), {}, contextOf())
    expect(api.requests.map(({ headers }) => headers.accept)).to.deep.equal([
      'application/vnd.x+json, application/json, text/csv;q=0.8',
      'application/json, */*;q=0.8',
    ])
  })

  it('are not sent without a usable secret', async () => {
    const fail = () => Promise.reject(new Error('secret-store-4711 is down'))
    const { request, lines } = requesterOf(api, { headers: { 'x-key': fail } })
    const result = await resultOf(request(operationAt(api.url), {}, contextOf()))
    await request.close()
    expect(textOf(result)).to.equal('The host has no valid credentials for the API. See the log of the host.')
    expect(lines.map(({ fields }) => fields)).to.deep.equal([
      {
        code: 'MH3452',
        reason: 'the function plugins.openapi.documents.test.headers.x-key failed',
        document: 'plugins.openapi.documents.test',
      },
    ])
    expect(api.requests).to.deep.equal([])
  })
})
