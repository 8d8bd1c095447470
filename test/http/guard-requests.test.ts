// Tests Host and Origin validation (DNS rebinding protection) of requests: paths, responses and log lines.
import { createServer, Server } from 'node:net'
import { networkInterfaces } from 'node:os'
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { requestBytes, requestHead, sendRaw } from '../support/raw-http.ts'
import { modern, modernRequest } from '../support/rpc.ts'
import { type LogLine, startHost, stopHosts } from '../support/start-host.ts'

const CONFIG = {
  toolsets: { all: [defineTool({ name: 'echo', handler: () => 'echo' })] },
  routes: { '/': { toolsets: 'all' } },
  plugins: { 'transport-streamable': {}, health: {} },
}

let url: string
let log: LogLine[]
before(async () => {
  ;({ url, log } = await startHost(CONFIG))
})
after(stopHosts)

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']
const FOREIGN = [{ Host: 'evil.example' }, { Origin: 'https://evil.example' }, { Origin: 'null' }, { Host: 'a b' }]

describe('Host and Origin validation of requests', () => {
  beforeEach(() => void log.splice(0))

  describe('foreign Host or Origin', () => {
    for (const method of METHODS) {
      it(`is rejected with 403 on ${method}, before path and method are checked`, async () => {
        for (const headers of FOREIGN) {
          for (const path of ['/', '/nowhere']) {
            const answer = await sendRaw(url, requestHead(url, { method, path, headers }))
            expect([answer.status, answer.headers.has('allow')], JSON.stringify(headers)).to.deep.equal([403, false])
            expect(answer.headers.has('access-control-allow-origin')).to.equal(false)
            if (method !== 'HEAD') expect(answer.message.error.code).to.equal(-32000)
          }
        }
      })
    }

    it('leaves no password, token or session id of the request in the log', async () => {
      const secret = 'hunter2-and-more'
      const odd: ReadonlyArray<readonly [string, Record<string, string>]> = [
        [`//message?sessionId=${secret}`, { Host: 'evil.example' }],
        [`//guarded?access_token=${secret}`, { Origin: 'https://evil.example' }],
        [`http://me:${secret}@evil.example/`, { Host: 'evil.example' }],
        ['/', { Host: `me:${secret}@evil.example` }],
        ['/', { Origin: `https://me:${secret}@evil.example/?token=${secret}` }],
        ['/', { Origin: `https://evil.example/?token=${secret}` }],
      ]
      for (const [path, headers] of odd) {
        const { status } = await sendRaw(url, requestHead(url, { path, headers }))
        expect(status, path).to.be.within(400, 404)
      }
      const told = JSON.stringify(log)
      expect(log.length).to.be.greaterThan(3)
      expect(told).not.to.include(secret)
    })

    it('is rejected with 403 in both protocol eras before the body is read', async () => {
      const { headers, body } = modernRequest('tools/list')
      for (const foreign of FOREIGN) {
        const answer = await sendRaw(url, requestBytes(url, body, { headers: { ...headers, ...foreign } }))
        expect(answer.status).to.equal(403)
        const old = await sendRaw(url, requestHead(url, { headers: { ...foreign, 'Content-Length': '1000000' } }))
        expect(old.status).to.equal(403)
      }
    })

    it('is accepted at /health, which is public', async () => {
      for (const headers of FOREIGN) {
        const answer = await sendRaw(url, requestHead(url, { method: 'GET', path: '/health', headers }))
        expect([answer.status, answer.message?.status ?? answer.body]).to.deep.equal([200, 'ready'])
      }
    })

    it('is logged with the rejected value and the config key that allows it', async () => {
      await sendRaw(url, requestHead(url, { headers: { Host: 'mcp.acme.example:81' } }))
      await sendRaw(url, requestHead(url, { headers: { Origin: 'https://app.acme.example' } }))
      const [host, origin] = log
      expect(log.map(({ level }) => level)).to.deep.equal(['warn', 'warn'])
      expect(host).to.include({ refused: 'hostNotAllowed', detail: 'mcp.acme.example:81', path: '/', ip: '127.0.0.1' })
      expect(host?.['fix']).to.include('"mcp.acme.example:81" to http.allowedHosts').and.include('http.publicUrl')
      expect(origin).to.include({ refused: 'originNotAllowed', detail: 'https://app.acme.example' })
      expect(origin?.['fix']).to.include('"https://app.acme.example" to http.allowedOrigins')
    })

    it('gets an error that names the rejected header but no config values', async () => {
      const { message } = await sendRaw(url, requestHead(url, { headers: { Host: 'evil.example' } }))
      expect(message.error).to.deep.equal({ code: -32000, message: 'Host not allowed: evil.example' })
    })
  })

  describe('host bound to 0.0.0.0', () => {
    it('accepts any Host without Origin and rejects any Origin by default', async () => {
      const open = await startHost({ ...CONFIG, http: { host: '0.0.0.0' } })
      expect((await modern(open.url, 'tools/list')).status).to.equal(200)
      const { headers, body } = modernRequest('tools/list')
      const named = await sendRaw(
        open.url,
        requestBytes(open.url, body, { headers: { ...headers, Host: 'a.example' } }),
      )
      expect(named.status).to.equal(200)
      for (const origin of ['https://a.example', open.url]) {
        expect((await modern(open.url, 'tools/list', {}, { headers: { Origin: origin } })).status).to.equal(403)
      }
    })

    it('accepts only its publicUrl if configured', async () => {
      const http = { host: '0.0.0.0', publicUrl: 'https://mcp.acme.example' }
      const open = await startHost({ ...CONFIG, http })
      const { headers, body } = modernRequest('tools/list')
      const under = async (more: Record<string, string>) =>
        (await sendRaw(open.url, requestBytes(open.url, body, { headers: { ...headers, ...more } }))).status
      expect(await under({ Host: 'mcp.acme.example' })).to.equal(200)
      expect(await under({ Host: 'mcp.acme.example', Origin: 'https://mcp.acme.example' })).to.equal(200)
      expect(await under({})).to.equal(403)
      expect(await under({ Host: 'mcp.acme.example', Origin: open.url })).to.equal(403)
    })
  })

  describe('host behind a trusted proxy', () => {
    it('validates X-Forwarded-Host and logs the forwarded address', async () => {
      const trusting = await startHost({ ...CONFIG, http: { trustProxy: true, publicUrl: 'https://mcp.acme.example' } })
      const forwarded = (host: string) => ({ 'X-Forwarded-Host': host, 'X-Forwarded-For': '203.0.113.9' })
      const status = async (host: string) =>
        (await modern(trusting.url, 'tools/list', {}, { headers: forwarded(host) })).status
      expect(await status('mcp.acme.example')).to.equal(200)
      expect(await status('evil.example')).to.equal(403)
      const [line] = trusting.log.filter(({ level }) => level === 'warn')
      expect(line).to.include({ detail: 'evil.example', ip: '203.0.113.9' })
    })
  })
})

const hasIpv6 = Object.values(networkInterfaces()).some(list => list?.some(({ address }) => address === '::1'))

describe("http.host 'localhost'", () => {
  it('listens on both loopback addresses until the host closes', async () => {
    const { host, url } = await startHost({
      toolsets: { all: [] },
      routes: { '/': { toolsets: 'all' } },
      http: { host: 'localhost', port: 0 },
    })
    const { port } = new URL(url)
    const statusAt = async (address: string) =>
      (await fetch(`http://${address}:${port}/none`).catch(() => undefined))?.status
    const addresses = ['127.0.0.1', ...(hasIpv6 ? ['[::1]'] : [])]
    for (const address of addresses) expect(await statusAt(address), address).to.equal(404)
    await host.close({ grace: 0 })
    for (const address of addresses) expect(await statusAt(address), address).to.equal(undefined)
  })

  if (hasIpv6) {
    it('with port 0, takes another port if the port is in use at one of the addresses', async () => {
      const blockers: Server[] = []
      const { listen } = Server.prototype
      Server.prototype.listen = function (this: Server, ...args: unknown[]) {
        const { host, port } = args[0] as { host?: string; port?: number }
        if (host === '127.0.0.1' && port !== 0 && blockers.length < 2) {
          // Another process takes the port first.
          const blocker = createServer()
          blockers.push(blocker)
          // Another test can have the port already.
          blocker.on('error', () => Reflect.apply(listen, this, args))
          Reflect.apply(listen, blocker, [{ host, port }, () => Reflect.apply(listen, this, args)])
          return this
        }
        return Reflect.apply(listen, this, args)
      } as typeof listen
      try {
        const { host, url } = await startHost({
          toolsets: { all: [] },
          routes: { '/': { toolsets: 'all' } },
          http: { host: 'localhost', port: 0 },
        })
        expect(blockers).to.have.length(2)
        expect((await fetch(`${url}/none`)).status).to.equal(404)
        await host.close({ grace: 0 })
      } finally {
        Server.prototype.listen = listen
        for (const blocker of blockers) blocker.close()
      }
    })
  }
})
