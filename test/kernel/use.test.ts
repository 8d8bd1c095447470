// Tests host.use: Koa middleware of plugins around every response.
import { once } from 'node:events'
import { expect } from 'chai'
import { HostError } from '../../core/index.ts'
import type { HostMiddleware } from '../../core/plugin.ts'
import { identifyByHeader } from '../fixtures/identify-by-header.ts'
import { plugin, withPlugins } from '../fixtures/plugins.ts'
import { eventually } from '../support/eventually.ts'
import { requestBytes, requestHead, sendRaw } from '../support/raw-http.ts'
import { modern } from '../support/rpc.ts'
import { initialize, openSession } from '../support/session-client.ts'
import { connectSse } from '../support/sse-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

const using = (...middleware: HostMiddleware[]) =>
  plugin(host => {
    for (const each of middleware) host.use(each)
  })

interface Seen {
  readonly what: string
  readonly status: number
}

/** Notes the status after `next()`. */
function createWatcher() {
  const seen: Seen[] = []
  const middleware: HostMiddleware = async (ctx, next) => {
    const what = `${ctx.method} ${ctx.path}`
    await next()
    seen.push({ what, status: ctx.status })
  }
  return { seen, middleware }
}

describe('host.use', () => {
  it('sees the final status of every HTTP response', async () => {
    const { seen, middleware } = createWatcher()
    const lock = plugin(
      host => {
        host.authorize((ctx, next) => {
          if (!ctx.state.user) throw new HostError('unauthorized')
          return next()
        })
      },
      { provides: ['authorize'] },
    )
    const { url } = await startHost(
      withPlugins(
        { watch: using(middleware), identify: identifyByHeader(), lock, health: {} },
        {
          http: { port: 0, maxBodySize: '1kb' },
          routes: {
            '/': { toolsets: 'all', plugins: { lock: false } },
            '/locked': { toolsets: 'all', authorize: true },
          },
        },
      ),
    )
    const answers: Array<[string, number]> = []
    const note = async (what: string, asked: Promise<{ readonly status: number }>) =>
      void answers.push([what, (await asked).status])
    await note('POST /', modern(url, 'tools/call', { name: 'hello' }))
    await note('POST /locked', modern(`${url}/locked`, 'tools/call', { name: 'hello' }))
    await note('GET /health', fetch(`${url}/health`))
    await note('GET /nowhere', fetch(`${url}/nowhere`))
    await note('GET /health', fetch(`${url}/health`, { method: 'GET', headers: { Origin: 'https://evil.example' } }))
    await note(
      'POST /',
      sendRaw(url, requestHead(url, { headers: { Origin: 'https://evil.example', 'Content-Length': '0' } })),
    )
    await note('PUT /', fetch(url, { method: 'PUT' }))
    await note('POST /', sendRaw(url, requestHead(url, { headers: { 'Content-Length': '99999' } })))
    // Without a declared length, the transport finds out.
    const chunk = 'a'.repeat(2_000)
    const chunked = requestHead(url, { headers: { 'Transfer-Encoding': 'chunked' } })
    await note('POST /', sendRaw(url, chunked, `${chunk.length.toString(16)}\r\n${chunk}\r\n`))
    await note('POST /', sendRaw(url, requestBytes(url, 'no JSON')))
    expect(answers.map(([, status]) => status)).to.deep.equal([200, 401, 200, 404, 200, 403, 405, 413, 413, 400])
    expect(seen.map(({ what, status }) => [what, status])).to.deep.equal(answers)
  })

  it('sees the status of streams and sessions, and their end as response close', async () => {
    const seen: string[] = []
    const { url } = await startHost(
      withPlugins({
        'transport-sse': {},
        watch: using(async (ctx, next) => {
          const { method, path } = ctx
          ctx.res.once('close', () => seen.push(`${method} ${path} over`))
          await next()
          seen.push(`${method} ${path} ${ctx.status}`)
        }),
      }),
    )
    await initialize(url)
    expect(seen.splice(0)).to.deep.equal(['POST / 200', 'POST / over'])
    const session = await openSession(url)
    seen.length = 0
    const stream = await session.get()
    expect(seen.splice(0)).to.deep.equal(['GET / 200'])
    stream.drop()
    await eventually('the end of the stream is seen', () => seen.length)
    expect(seen.splice(0)).to.deep.equal(['GET / over'])
    const sse = await connectSse(url)
    expect(seen.splice(0)).to.deep.equal(['GET /sse 200'])
    await sse.request('ping')
    expect(seen.filter(line => line.startsWith('POST'))).to.include('POST /message 202')
  })

  it("runs on the plugin's routes, and on requests outside routes if globally enabled", async () => {
    const seen: string[] = []
    const mark = (name: string) =>
      using((ctx, next) => {
        seen.push(`${name} ${ctx.path}`)
        return next()
      })
    const page = plugin(host => {
      const methods = {
        GET(ctx: { body: unknown }) {
          ctx.body = 'page'
        },
      }
      host.endpoint('/page', () => ({ methods }))
      host.endpoint('/open', () => ({ methods, public: true }))
      host.endpoint('/fixed', { methods })
      for (const route of host.routes) host.endpoint(`/about${route.path}`, { methods }, { route })
    })
    const routes = {
      '/a': { toolsets: 'all' },
      '/b': { toolsets: 'all', plugins: { all: false } },
      '/c': { toolsets: 'all', plugins: { one: mark('one') } },
    } as const
    const { url } = await startHost(withPlugins({ all: mark('all'), page }, { routes }))
    const paths = ['page', 'open'].flatMap(name => ['/a', '/b', '/c'].map(path => `${path}/${name}`))
    for (const path of [...paths, '/about/a', '/about/b', '/about/c', '/fixed', '/nowhere', '/b/nowhere']) {
      await (await fetch(url + path)).text()
    }
    expect(seen).to.deep.equal([
      ...['all /a/page', 'all /c/page', 'one /c/page', 'all /a/open', 'all /c/open', 'one /c/open'],
      ...['all /about/a', 'all /about/c', 'one /about/c', 'all /fixed', 'all /nowhere', 'all /b/nowhere'],
    ])
  })

  it('sees one canonical path and cannot reroute a request', async () => {
    const seen: string[] = []
    const rewrite = using((ctx, next) => {
      seen.push(`${ctx.path} ${ctx.originalUrl} ${ctx.state.route?.path}`)
      ctx.url = '/open'
      return next()
    })
    const lock = plugin(host =>
      host.authorize(() => {
        throw new HostError('unauthorized')
      }),
    )
    const routes = { '/open': { toolsets: 'all', plugins: { lock: false } }, '/locked': { toolsets: 'all' } } as const
    const { url } = await startHost(withPlugins({ rewrite, lock }, { routes }))
    for (const path of ['/locked', '/%6cocked', '/locked/?a=b']) {
      expect((await modern(url + path, 'tools/list')).status).to.equal(401)
    }
    expect(seen).to.deep.equal([...Array(2).fill('/locked /locked /locked'), '/locked /locked?a=b /locked'])
  })

  it('can refuse requests with host or Koa errors; other errors become 500', async () => {
    const { seen, middleware } = createWatcher()
    const fails = using(middleware, (ctx, next) => {
      ctx.set('X-Before', 'stays')
      if (ctx.get('X-How') === 'HostError') throw new HostError('tooManyRequests')
      if (ctx.get('X-How') === 'Koa') ctx.throw(418, 'short and stout', { headers: { 'X-Pot': 'tea' } })
      if (ctx.get('X-How') === 'secret') ctx.throw(503, 'the password is swordfish', { headers: { 'X-Pot': 'empty' } })
      if (ctx.get('X-How') === 'Error') throw new Error('the password is swordfish')
      return next()
    })
    const { url, log } = await startHost(withPlugins({ fails }))
    const ask = async (how: string) => {
      const response = await fetch(url, { method: 'POST', headers: { 'X-How': how } })
      expect(response.headers.get('x-before')).to.equal('stays')
      return [response.status, response.headers.get('x-pot'), await response.text()] as const
    }
    expect((await ask('HostError'))[0]).to.equal(429)
    expect(await ask('Koa')).to.deep.equal([418, 'tea', 'short and stout'])
    expect(await ask('secret')).to.deep.equal([503, 'empty', 'Service Unavailable'])
    const [status, , text] = await ask('Error')
    expect(status).to.equal(500)
    expect(text).to.not.contain('swordfish')
    expect(seen.map(({ status }) => status)).to.deep.equal([429, 418, 503, 500])
    const failures = log.filter(({ level }) => level === 'error')
    expect(failures).to.have.length(2)
    for (const { err } of failures) expect(String(err)).to.contain('swordfish')
  })

  it('logs errors thrown after the response started', async () => {
    const fails = using(async (_ctx, next) => {
      await next()
      throw new Error('too late')
    })
    const { url, log } = await startHost(withPlugins({ fails }))
    const { status, message } = await modern(url, 'tools/call', { name: 'hello' })
    expect([status, message.result.content[0].text]).to.deep.equal([200, 'hello'])
    const session = await openSession(url)
    const stream = await session.get()
    expect(stream.status).to.equal(200)
    expect((await fetch(`${url}/nowhere`)).status).to.equal(500)
    expect(log.filter(({ level }) => level === 'error').map(({ err }) => String(err))).to.include('Error: too late')
  })

  it('fails the call and logs a message if middleware consumes the body', async () => {
    const reads = using(async (ctx, next) => {
      ctx.req.resume()
      await once(ctx.req, 'end')
      return next()
    })
    const { url, log } = await startHost(withPlugins({ reads }))
    expect((await modern(url, 'tools/call', { name: 'hello' })).status).to.equal(500)
    expect(String(log.find(({ level }) => level === 'error')?.['err'])).to.contain('read before its transport')
  })
})
