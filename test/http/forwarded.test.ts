// Tests `http.trustProxy`: client address and host from X-Forwarded headers.
import { expect } from 'chai'
import type { HttpSettings } from '../../core/config/define-config.ts'
import { plugin, withPlugins } from '../fixtures/plugins.ts'
import { expectStopped } from '../fixtures/start-failure.ts'
import { requestHead, sendRaw } from '../support/raw-http.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

const publicUrl = 'https://mcp.acme.example'

/** A host behind proxies, and who it takes the sender of a request for. */
async function behind(http: HttpSettings) {
  const seen: string[] = []
  const watch = plugin(host =>
    host.onRequest((ctx, next) => {
      seen.push(ctx.ip)
      return next()
    }),
  )
  const { url } = await startHost(withPlugins({ watch }, { http: { port: 0, publicUrl, ...http } }))
  return {
    ipOf: async (forwardedFor: string | readonly string[] | undefined) => {
      await sendRaw(url, requestHead(url, { method: 'PUT', headers: { 'X-Forwarded-For': forwardedFor } }))
      return seen.at(-1)
    },
    statusOf: async (host: string, forwardedHost: string | readonly string[] | undefined, more = {}) => {
      const headers = { Host: host, 'X-Forwarded-Host': forwardedHost, ...more }
      return (await sendRaw(url, requestHead(url, { method: 'PUT', headers }))).status
    },
  }
}

const FORGED = '198.51.100.1'
const CLIENT = '203.0.113.9'
const INNER = '10.1.2.3'

describe('http.trustProxy', () => {
  it('off: ignores forwarded headers', async () => {
    const { ipOf, statusOf } = await behind({})
    expect(await ipOf(CLIENT)).to.equal('127.0.0.1')
    expect(await statusOf('evil.example', 'localhost')).to.equal(403)
    expect(await statusOf('localhost', 'evil.example')).to.equal(405)
  })

  for (const trustProxy of [true, 1]) {
    it(`${trustProxy}: trusts one proxy and ignores addresses that the client sent`, async () => {
      const { ipOf } = await behind({ trustProxy })
      expect(await ipOf(CLIENT)).to.equal(CLIENT)
      expect(await ipOf(`${FORGED}, ${CLIENT}`)).to.equal(CLIENT)
      expect(await ipOf([FORGED, CLIENT])).to.equal(CLIENT)
      expect(await ipOf(undefined)).to.equal('127.0.0.1')
    })
  }

  it('a number: trusts that many proxies', async () => {
    const { ipOf } = await behind({ trustProxy: 2 })
    expect(await ipOf(`${CLIENT}, ${INNER}`)).to.equal(CLIENT)
    expect(await ipOf(`${FORGED}, ${FORGED}, ${CLIENT}, ${INNER}`)).to.equal(CLIENT)
    // Fewer than there should be: the outermost that is there.
    expect(await ipOf(CLIENT)).to.equal(CLIENT)
  })

  it('addresses: trusts entries of listed proxies only, starting from the nearest', async () => {
    const { ipOf } = await behind({ trustProxy: ['loopback', '10.0.0.0/8', '2001:db8::/32'] })
    expect(await ipOf(`${FORGED}, ${CLIENT}, ${INNER}`)).to.equal(CLIENT)
    expect(await ipOf(`${FORGED}, 2001:DB9::1, 2001:db8::7, ${INNER}`)).to.equal('2001:DB9::1')
    expect(await ipOf(`${INNER}, ${CLIENT}`)).to.equal(CLIENT)
    const stranger = await behind({ trustProxy: ['10.0.0.0/8'] })
    expect(await stranger.ipOf(CLIENT)).to.equal('127.0.0.1')
    expect(await stranger.statusOf('evil.example', 'mcp.acme.example')).to.equal(403)
  })

  it('parses addresses with ports and falls back to the nearest valid address', async () => {
    const { ipOf } = await behind({ trustProxy: 2 })
    expect(await ipOf(`${CLIENT}:1234, ${INNER}`)).to.equal(CLIENT)
    expect(await ipOf(`[2001:db8::9]:1234, ${INNER}`)).to.equal('2001:db8::9')
    for (const odd of ['unknown', '_hidden', '1.2.3', '"', 'x'.repeat(9_000), '::1'.padEnd(99, '0')]) {
      expect(await ipOf(`${odd}, ${INNER}`), odd).to.equal(INNER)
    }
  })

  it('treats a client with 30 forged headers as one caller', async () => {
    const forged = Array.from({ length: 30 }, (_, index) => `198.51.100.${index}`)
    for (const trustProxy of [true, ['loopback']]) {
      const { ipOf } = await behind({ trustProxy })
      const callers = new Set<string | undefined>()
      for (const address of forged) callers.add(await ipOf(`${address}, ${CLIENT}`))
      expect([...callers]).to.deep.equal([CLIENT])
    }
  })

  it('validates the host that the outermost proxy forwards', async () => {
    const one = await behind({ trustProxy: true })
    expect(await one.statusOf('internal:3000', 'mcp.acme.example')).to.equal(405)
    expect(await one.statusOf('localhost', 'evil.example')).to.equal(403)
    expect(await one.statusOf('evil.example', undefined)).to.equal(403)
    expect(await one.statusOf('mcp.acme.example', undefined)).to.equal(405)
    // Written before the proxy's own, it is the client's.
    expect(await one.statusOf('internal', 'mcp.acme.example, evil.example')).to.equal(403)
    expect(await one.statusOf('internal', ['mcp.acme.example', 'evil.example'])).to.equal(403)
    expect(await one.statusOf('internal', 'evil.example, mcp.acme.example')).to.equal(405)
    const two = await behind({ trustProxy: 2 })
    const through = { 'X-Forwarded-For': `${CLIENT}, ${INNER}` }
    expect(await two.statusOf('internal', 'mcp.acme.example, edge.internal', through)).to.equal(405)
    expect(await two.statusOf('internal', 'mcp.acme.example, evil.example, edge.internal', through)).to.equal(403)
    expect(await two.statusOf('internal', 'mcp.acme.example', through)).to.equal(405)
  })

  it('stops startup for an invalid address and shows a valid one', async () => {
    for (const entry of ['10.0.0.0/33', 'proxy.internal', '0.0.0.0/0', '10.0.0']) {
      await expectStopped(withPlugins({}, { http: { port: 0, trustProxy: ['loopback', entry] } }), 'http.trustProxy: ')
    }
    for (const wrong of [0, -1, 1.5, [], 'loopback']) {
      const http = { port: 0, trustProxy: wrong as number }
      await expectStopped(withPlugins({}, { http }), 'http.trustProxy')
    }
  })
})
