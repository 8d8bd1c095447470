// Tests request bodies of endpoints: parsing of JSON, forms and text, limits and error statuses.
import { expect } from 'chai'
import { HostError } from '../../core/index.ts'
import { identifyByHeader } from '../fixtures/identify-by-header.ts'
import { plugin, withPlugins } from '../fixtures/plugins.ts'
import { createGate } from '../support/gate.ts'
import { openSocket, requestHead, sendRaw } from '../support/raw-http.ts'
import { modern } from '../support/rpc.ts'
import { type LogLine, startHost, stopHosts } from '../support/start-host.ts'

let url: string
let largeUrl: string
let log: LogLine[]
let served = 0
/** Of the request whose client leaves. */
const came = createGate()
const over = createGate()
before(async () => {
  const pages = plugin(host => {
    host.use(async (ctx, next) => {
      if (ctx.get('X-Leaves')) came.open()
      await next()
      if (ctx.get('X-Leaves')) over.open()
    })
    host.authorize((ctx, next) => {
      if (!ctx.state.user) throw new HostError('unauthorized')
      return next()
    })
    for (const body of ['json', 'form', 'text'] as const) {
      const echo = (ctx: { request: { body?: unknown }; body: unknown }) => {
        served++
        ctx.body = JSON.stringify(ctx.request.body) ?? 'nothing'
      }
      host.endpoint(`/${body}`, { body, methods: { POST: echo, PUT: echo, GET: echo, DELETE: echo } })
      host.endpoint(`/${body}`, () => ({ body, methods: { POST: echo } }))
    }
  })
  const start = (maxBodySize: string) =>
    startHost(
      withPlugins(
        { pages, identify: identifyByHeader() },
        {
          http: { port: 0, maxBodySize },
          routes: { '/': { toolsets: 'all', plugins: { pages: false } }, '/r': { toolsets: 'all' } },
        },
      ),
    )
  ;({ url, log } = await start('3kb'))
  ;({ url: largeUrl } = await start('4mb'))
})
after(stopHosts)

const FORM = 'application/x-www-form-urlencoded'

async function send(path: string, type: string, body: string | Uint8Array<ArrayBuffer>, init: RequestInit = {}) {
  const headers = { 'Content-Type': type, ...(init.headers as Record<string, string>) }
  const response = await fetch(path.startsWith('/large') ? largeUrl + path.slice('/large'.length) : url + path, {
    method: 'POST',
    body,
    ...init,
    headers,
  })
  return [response.status, await response.text()] as const
}

describe('Request body parsing', () => {
  it('parses the body format that the endpoint declares', async () => {
    expect(await send('/json', 'application/json', '{"a":[1]}')).to.deep.equal([200, '{"a":[1]}'])
    expect(await send('/json', 'application/merge-patch+json; charset=UTF-8', '[1]')).to.deep.equal([200, '[1]'])
    expect(await send('/form', FORM, 'a=1&b=x+y&a=%C3%A9')).to.deep.equal([200, '{"a":["1","é"],"b":"x y"}'])
    expect(await send('/text', 'text/plain', 'as it is')).to.deep.equal([200, '"as it is"'])
    expect(await send('/text', 'text/markdown;charset=utf-8', 'é')).to.deep.equal([200, '"é"'])
    expect(await send('/json', 'application/json', '{}', { method: 'PUT' })).to.deep.equal([200, '{}'])
  })

  it('parses form fields as plain values without prototype pollution', async () => {
    const [, text] = await send('/form', FORM, 'a[b]=1&c.d=2&e[]=3&__proto__[x]=4&f[0]=5')
    expect(JSON.parse(text)).to.deep.equal({ 'a[b]': '1', 'c.d': '2', 'e[]': '3', '__proto__[x]': '4', 'f[0]': '5' })
    expect((await send('/json', 'application/json', '{"__proto__":{"x":1}}'))[0]).to.equal(400)
    expect(({} as { x?: number }).x).to.equal(undefined)
  })

  it('collects repeated form fields into a list and limits the number of fields', async () => {
    const fields = (count: number) => Array(count).fill('a=1').join('&')
    for (const count of [20, 21, 250]) {
      expect(JSON.parse((await send('/form', FORM, fields(count)))[1]).a, `${count}`).to.deep.equal(
        Array(count).fill('1'),
      )
    }
    expect((await send('/large/form', FORM, fields(1_000)))[0]).to.equal(200)
    expect((await send('/large/form', FORM, fields(1_001)))[0]).to.equal(400)
    expect((await send('/large/form', FORM, '&'.repeat(2_000_000)))[0]).to.equal(400)
    expect(await send('/form', FORM, '__proto__=1&__proto__=2&toString=3&a=%&=5&&b')).to.deep.equal([
      200,
      '{"a":"%","":"5","b":""}',
    ])
    expect(await send('/form', FORM, '')).to.deep.equal([200, '{}'])
  })

  it('checks JSON depth and size limits before parsing', async () => {
    for (const [name, body] of [
      ['deep', '['.repeat(1_000_000) + ']'.repeat(1_000_000)],
      ['many lists', `[${'[],'.repeat(600_000)}[]]`],
      ['many objects', `[${'{},'.repeat(600_000)}{}]`],
      ['many members', `{${Array.from({ length: 150_000 }, (_, index) => `"${index}":1`).join(',')}}`],
      ['no JSON, and deep', '['.repeat(1_000)],
      ['prototype', '{"constructor":{"prototype":{"x":1}}}'],
    ] as const) {
      const [status, text] = await send('/large/json', 'application/json', body)
      expect([status, JSON.parse(text).error.code], name).to.deep.equal([400, -32600])
    }
    expect((await send('/large/json', 'application/json', `[${'{},'.repeat(50_000)}{}]`))[0]).to.equal(200)
  })

  it('accepts JSON objects and lists only; rejects an empty or missing body with 400', async () => {
    for (const body of ['', '  ', 'null', '1', 'true']) {
      expect((await send('/json', 'application/json', body))[0], body).to.equal(400)
    }
    const head = requestHead(url, { path: '/json', headers: { Connection: 'close' } })
    expect((await sendRaw(url, head)).status).to.equal(400)
  })

  it('rejects unsupported content types, charsets and encodings with 415', async () => {
    for (const [path, type, headers] of [
      ['/json', 'text/plain', {}],
      ['/json', FORM, {}],
      ['/form', 'application/json', {}],
      ['/form', 'multipart/form-data; boundary=x', {}],
      ['/text', 'application/json', {}],
      ['/text', 'text/plain; charset=iso-8859-1', {}],
      ['/text', 'text/plain; charset="utf-16le', {}],
      ['/text', 'text/plain; charset=utf-16; x', {}],
      ['/text', 'text/plain; charset=utf-8; charset=utf-16', {}],
      ['/text', 'text/plain; charset', {}],
      ['/json', 'application/json', { 'Content-Encoding': 'gzip' }],
      ['/json', 'application/json', { 'Content-Encoding': 'br' }],
    ] as const) {
      const [status, text] = await send(path, type, '{}', { headers })
      expect([status, JSON.parse(text).error.code], `${path} ${type}`).to.deep.equal([415, -32000])
    }
    const bare = await sendRaw(
      url,
      requestHead(url, { path: '/json', headers: { 'Content-Type': undefined, 'Content-Length': '0' } }),
    )
    expect(bare.status).to.equal(415)
  })

  it('rejects a malformed body with 400 without echoing or logging it', async () => {
    log.splice(0)
    for (const body of ['{"secret":', 'secret', '"secret"', '{"secret":1}}']) {
      const [status, text] = await send('/json', 'application/json', body)
      expect([status, JSON.parse(text).error.code], body).to.deep.equal([400, -32700])
      expect(text).to.not.contain('secret')
    }
    const many = Array.from({ length: 300 }, (_, index) => index.toString(36)).join('&')
    expect((await send('/form', FORM, many))[0]).to.equal(200)
    expect(JSON.stringify(log)).to.not.contain('secret')
    expect(log.filter(({ level }) => level === 'error')).to.deep.equal([])
  })

  it('distinguishes malformed bodies from unsupported values and field limits', async () => {
    for (const body of ['1', 'null', '"secret"', ' true']) {
      const [status, text] = await send('/json', 'application/json', body)
      expect(status).to.equal(400)
      expect(JSON.parse(text).error.message, body).to.match(/JSON/)
    }
    expect((await send('/json', 'application/json', '{"a":'))[1]).to.match(/JSON/)
    expect((await send('/json', 'application/json', '01'))[1]).to.match(/JSON/)
    const fields = (count: number) => `${'a&'.repeat(count - 1)}a`
    expect((await send('/form', FORM, fields(400)))[0]).to.equal(200)
    const [status, text] = await send('/form', FORM, fields(1_001))
    expect([status, JSON.parse(text).error.message]).to.deep.equal([
      400,
      'Parse error: the form has more than 1000 fields',
    ])
  })

  it('rejects a body over http.maxBodySize with 413, also without Content-Length', async () => {
    for (const path of ['/json', '/form', '/text'] as const) {
      const type = { '/json': 'application/json', '/form': FORM, '/text': 'text/plain' }[path]
      const text = `["${'a'.repeat(3_200)}"]`
      expect((await send(path, type, text))[0], path).to.equal(413)
      const head = requestHead(url, { path, headers: { 'Content-Type': type, 'Transfer-Encoding': 'chunked' } })
      const answer = await sendRaw(url, head, `${text.length.toString(16)}\r\n${text}\r\n`)
      expect([answer.status, answer.headers.get('connection')], path).to.deep.equal([413, 'close'])
    }
  })

  it('discards a request whose body ends early', async () => {
    const before = served
    const socket = await openSocket(url)
    socket.write(requestHead(url, { path: '/json', headers: { 'Content-Length': '100', 'X-Leaves': 'yes' } }))
    socket.write('{"a"')
    await came.opened
    socket.destroy()
    await over.opened
    expect(served).to.equal(before)
    expect((await send('/json', 'application/json', '{}'))[0]).to.equal(200)
  })

  it('reads bodies of POST and PUT requests only', async () => {
    for (const method of ['GET', 'DELETE']) {
      const response = await fetch(`${url}/json`, { method })
      expect([response.status, await response.text()], method).to.deep.equal([200, 'nothing'])
    }
  })

  it('authorizes a route endpoint before reading its body and does not consume MCP messages', async () => {
    expect((await send('/r/json', 'image/png', '{'))[0]).to.equal(401)
    const headers = { 'X-User': 'ann' }
    expect(await send('/r/json', 'application/json', '{"a":1}', { headers })).to.deep.equal([200, '{"a":1}'])
    expect((await modern(url, 'tools/call', { name: 'hello' })).status).to.equal(200)
  })
})
