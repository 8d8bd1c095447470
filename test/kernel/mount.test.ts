// Tests host.mount: path handling, security checks, error handling and path conflicts of a mounted Koa app.
import type { RequestListener } from 'node:http'
import { Readable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import Router from '@koa/router'
import { expect } from 'chai'
import Koa from 'koa'
import { HostError } from '../../core/index.ts'
import { definePlugin, type Endpoint } from '../../core/plugin.ts'
import { hello, plugin, withPlugins } from '../fixtures/plugins.ts'
import { expectStopped } from '../fixtures/start-failure.ts'
import { eventually } from '../support/eventually.ts'
import { createGate } from '../support/gate.ts'
import { requestHead, sendRaw } from '../support/raw-http.ts'
import { modern } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

/** Says which path it sees; what ends with `-missing` it leaves to others. */
function createApp() {
  const app = new Koa()
  app.use((ctx, next) => {
    if (ctx.path.endsWith('missing')) return next()
    if (ctx.path === '/teapot') ctx.throw(418, 'short and stout')
    if (ctx.path === '/refused') throw new HostError('forbidden', { detail: 'by the app' })
    ctx.body = `${ctx.method} ${ctx.path}${ctx.search}`
  })
  return app
}

const mounted = (path: string, settings?: Pick<Endpoint, 'public' | 'cors'>) =>
  plugin(host => host.mount(path, createApp(), settings))

const get = async (url: string, init?: RequestInit) => {
  const response = await fetch(url, init)
  return [response.status, await response.text()] as const
}

describe('host.mount', () => {
  it('serves an app at its path and below with the prefix stripped, for every HTTP method', async () => {
    const { url } = await startHost(withPlugins({ app: mounted('/app') }))
    expect(await get(`${url}/app`)).to.deep.equal([200, 'GET /'])
    expect(await get(`${url}/app/`)).to.deep.equal([200, 'GET /'])
    expect(await get(`${url}/app/a/b?c=d`)).to.deep.equal([200, 'GET /a/b?c=d'])
    expect(await get(`${url}/%61pp/caf%c3%a9`, { method: 'PATCH' })).to.deep.equal([200, 'PATCH /caf%C3%A9'])
    expect((await modern(url, 'tools/call', { name: 'hello' })).status).to.equal(200)
  })

  it('does not route non-canonical paths or paths with a similar prefix to the app', async () => {
    const { url } = await startHost(withPlugins({ app: mounted('/app') }))
    for (const path of [
      '/app//a',
      '/app/../x',
      '/app/%2e%2e/x',
      '/app/a%2fb',
      '/app/%00',
      '/apple',
      '/App',
      '/x/app',
    ]) {
      const { status } = await sendRaw(url, requestHead(url, { method: 'GET', path }))
      expect(status, path).to.equal(404)
    }
  })

  it('responds 404 if the app calls next, and uses the status of thrown errors', async () => {
    const { url } = await startHost(withPlugins({ app: mounted('/app') }))
    const [status, text] = await get(`${url}/app/missing`)
    expect([status, JSON.parse(text).error.code]).to.deep.equal([404, -32600])
    expect(await get(`${url}/app/teapot`)).to.deep.equal([418, 'short and stout'])
    expect((await get(`${url}/app/refused`))[1]).to.contain('Forbidden: by the app')
  })

  it('lets the app respond as in Koa and responds only if the app did not', async () => {
    const app = new Koa()
    const router = new Router()
    router.get('/page', ctx => {
      ctx.body = 'page'
    })
    const seen: number[] = []
    app.use(async (ctx, next) => {
      await next()
      seen.push(ctx.status)
      if (ctx.path === '/late' && ctx.status === 404) ctx.body = 'late'
      if (ctx.path === '/own') ctx.status = 404
    })
    app.use(router.routes()).use(router.allowedMethods())
    const { url } = await startHost(withPlugins({ app: plugin(host => host.mount('/app', app)) }))
    expect(await get(`${url}/app/page`)).to.deep.equal([200, 'page'])
    expect(await get(`${url}/app/late`)).to.deep.equal([200, 'late'])
    expect(await get(`${url}/app/own`)).to.deep.equal([404, 'Not Found'])
    const [status, text] = await get(`${url}/app/nothing`)
    expect([status, JSON.parse(text).error.code]).to.deep.equal([404, -32600])
    const refused = await fetch(`${url}/app/page`, { method: 'DELETE' })
    expect([refused.status, refused.headers.get('allow')]).to.deep.equal([405, 'HEAD, GET'])
    const options = await fetch(`${url}/app/page`, { method: 'OPTIONS' })
    expect([options.status, options.headers.get('allow')]).to.deep.equal([200, 'HEAD, GET'])
    expect(seen).to.deep.equal([200, 404, 404, 404, 405, 200])
  })

  it("logs app errors once and emits them to the app's error listeners", async () => {
    const app = new Koa()
    const heard: string[] = []
    const arrived = createGate()
    app.on('error', (error, ctx) => heard.push(`${ctx.originalUrl} ${error.message}`))
    app.use(ctx => {
      const failure = new Error('the password is swordfish')
      if (ctx.path === '/emits') ctx.app.emit('error', failure, ctx)
      if (ctx.path === '/calls') return ctx.onerror(failure)
      if (ctx.path === '/throws') throw failure
      if (ctx.path === '/refuses') ctx.throw(409, 'meant for the client')
      ctx.body = ctx.path === '/breaks' ? Readable.from(breaking(failure)) : 'fine'
    })
    async function* breaking(failure: Error) {
      yield 'x'.repeat(100_000)
      await arrived.opened
      throw failure
    }
    const { url, log } = await startHost(withPlugins({ app: plugin(host => host.mount('/app', app)) }))
    expect(await get(`${url}/app/emits`)).to.deep.equal([200, 'fine'])
    expect((await get(`${url}/app/calls`))[1]).to.equal('Internal Server Error')
    expect((await get(`${url}/app/throws`))[1]).to.not.contain('swordfish')
    expect(await get(`${url}/app/refuses`)).to.deep.equal([409, 'meant for the client'])
    const broken = await fetch(`${url}/app/breaks`)
    arrived.open()
    expect(await broken.text().catch(() => 'cut')).to.equal('cut')
    const paths = ['emits', 'calls', 'throws', 'breaks'].map(name => `/app/${name}`)
    const errors = log.filter(({ level }) => level === 'error')
    expect(errors.map(({ path }) => path)).to.deep.equal(paths)
    for (const { err } of errors) expect(String(err)).to.contain('swordfish')
    const told = ['breaks', 'calls', 'emits', 'refuses', 'throws'].map(name => `/app/${name}`)
    expect([...new Set(heard.map(line => line.split(' ')[0]))].sort()).to.deep.equal(told)
  })

  it('does not log client disconnects or throwing listeners as app failures', async () => {
    const app = new Koa()
    let gone = 0
    app.on('error', () => {
      throw new Error('a listener failed')
    })
    app.use(ctx => {
      if (ctx.path === '/fails') return void ctx.app.emit('error', new Error('told'), ctx)
      ctx.res.once('close', () => gone++)
      ctx.body = new Readable({
        read() {
          this.push('x'.repeat(1_000))
        },
      })
    })
    const { url, log } = await startHost(withPlugins({ app: plugin(host => host.mount('/app', app)) }))
    const leaving = new AbortController()
    const { body } = await fetch(`${url}/app/large`, { signal: leaving.signal })
    await body?.getReader().read()
    leaving.abort()
    await eventually('the answer is closed', () => gone)
    expect((await get(`${url}/app/fails`))[0]).to.equal(404)
    const errors = log.filter(({ level }) => level === 'error').map(({ err }) => String(err))
    expect(errors.sort()).to.deep.equal(['Error: a listener failed', 'Error: told'])
  })

  it('serves a req/res handler such as Express', async () => {
    const listener: RequestListener = async (req, res) => {
      await turn()
      res.end(`${req.method} ${req.url}`)
    }
    const express = plugin(host =>
      host.mount(
        '/app',
        ctx =>
          new Promise<void>(done => {
            ctx.respond = false
            ctx.status = 200
            ctx.res.once('close', done)
            listener(ctx.req, ctx.res)
          }),
      ),
    )
    const { url } = await startHost(withPlugins({ express }))
    expect(await get(`${url}/app/a?b=c`)).to.deep.equal([200, 'GET /a?b=c'])
  })

  it('checks Host and Origin before the app, unless the app is public', async () => {
    const { url } = await startHost(withPlugins({ app: mounted('/app'), open: mounted('/open', { public: true }) }))
    const headers = { Origin: 'https://evil.example' }
    expect((await get(`${url}/app/a`, { headers }))[0]).to.equal(403)
    expect(await get(`${url}/open/a`, { headers })).to.deep.equal([200, 'GET /a'])
  })

  it('leaves endpoints of its own plugin reachable', async () => {
    const own = plugin(host => {
      host.mount('/app', createApp())
      const at = (what: string) => ({
        methods: {
          GET(ctx: { body: unknown }) {
            ctx.body = what
          },
        },
      })
      host.endpoint('/app/own', at('own'))
      host.endpoint('/app/item/:id', at('item'))
    })
    const { url } = await startHost(withPlugins({ own }))
    expect((await get(`${url}/app/own`))[1]).to.equal('own')
    expect((await get(`${url}/app/item/1`))[1]).to.equal('item')
    expect((await get(`${url}/app/own`, { method: 'POST' }))[0]).to.equal(405)
    expect((await get(`${url}/app/own/more`))[1]).to.equal('GET /own/more')
  })

  const routes = { '/': { toolsets: 'all' }, '/a/b': { toolsets: 'all' }, '/t/:category': { toolsets: ':category' } }
  for (const [path, why] of [
    ['/', "would hide paths of routes['/']"],
    ['/a', "would hide paths of routes['/a/b']"],
    ['/a/b', "would hide paths of routes['/a/b']"],
    ['/%61', "would hide paths of routes['/a/b']"],
    ['/t', "would hide paths of routes['/t/:category']"],
    ['/t/files', "would hide paths of routes['/t/:category']"],
    ['/health', 'would take /health, which plugins.health serves'],
    ['/other/below', 'would take'],
    ['/outer/inner', 'is below /outer, where plugins.outer has mounted an app; choose another path'],
    ['/x/:id', 'has a parameter'],
  ] as const) {
    it(`stops startup for an app at ${path}`, () => {
      const other = mounted('/other')
      const below = plugin(host => host.endpoint('/other/below', { methods: {} }))
      const clash = path === '/other/below' ? { below, app: other } : { outer: mounted('/outer'), app: mounted(path) }
      return expectStopped(withPlugins({ health: {}, ...clash }, { routes }), why)
    })
  }

  it('stops startup if two apps share a path', async () => {
    for (const [one, other] of [
      ['/app', '/app'],
      ['/app', '/app/below'],
      ['/app/below', '/app'],
    ] as const) {
      await expectStopped(withPlugins({ one: mounted(one), other: mounted(other) }), /both serve|would take|is below/)
    }
    const twice = plugin(host => {
      host.mount('/app', createApp())
      host.mount('/app', createApp())
    })
    await expectStopped(withPlugins({ twice }), /plugins\.twice/)
  })

  it('stops startup with the cause if options of a route serve a fixed path again', async () => {
    const properties = { a: { type: 'integer', default: 1 } } as const
    const app = definePlugin({
      options: { type: 'object', additionalProperties: false, properties },
      setup: host => host.mount('/app', createApp()),
    })
    const routes = { '/': { toolsets: 'all' }, '/b': { toolsets: 'all', plugins: { app: { a: 2 } } } }
    const cause = "plugins.app serves /app twice, because routes['/b'].plugins.app has options of its own; remove them"
    await expectStopped(withPlugins({ app: app() }, { routes }), cause)
  })

  it('serves an app below a route without affecting the route', async () => {
    const lock = plugin(host =>
      host.authorize(() => {
        throw new HostError('unauthorized')
      }),
    )
    const app = mounted('/a/b/app')
    const { url } = await startHost({
      toolsets: { all: [hello] },
      routes: { '/a/b': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, 'transport-sse': {}, lock, app },
    })
    expect((await modern(`${url}/a/b`, 'tools/list')).status).to.equal(401)
    expect((await get(`${url}/a/b/sse`))[0]).to.equal(401)
    expect(await get(`${url}/a/b/app/x`)).to.deep.equal([200, 'GET /x'])
  })
})
