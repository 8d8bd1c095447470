// Tests `mcp-host proxy` with HTTP_PROXY and NO_PROXY in the environment of the process.
import { createServer } from 'node:http'
import { expect } from 'chai'
import { explainFailure } from '../../cli/client/connect.ts'
import { createProxyFetch } from '../../client/node/index.ts'
import { removeFolders } from '../config/folder.ts'
import { initialize } from '../plugins/transport-stdio/stdio-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { endRelays, openProxy } from './proxy-client.ts'
import { closeServers, listenAnywhere } from './raw-mcp-server.ts'

describe('mcp-host proxy and the HTTP proxy of the environment', () => {
  let url: string
  before(async () => {
    url = `${(await startHost({ toolsets: { all: [] }, routes: { '/mcp': { toolsets: 'all' } } })).url}/mcp`
  })
  after(async () => {
    await endRelays()
    closeServers()
    await stopHosts()
    await removeFolders()
  })

  it('names an unavailable HTTP proxy and the variable that configures it', async () => {
    const dead = createServer()
    const away = await listenAnywhere(dead)
    dead.close()
    const tell = async (given: string, values: Parameters<typeof openProxy>[1]) =>
      (await (await openProxy(given, values)).request(1, 'ping')).error?.message
    const why = (given: string, from: string) =>
      `${given} was not called: the HTTP proxy ${away} ${from} cannot be reached (ECONNREFUSED); check that proxy; the next request tries again`
    expect(await tell(url, { proxy: away })).to.equal(why(url, 'of the options'))
    const remote = 'http://mcp.example/mcp'
    process.env['HTTP_PROXY'] = away
    try {
      expect(await tell(remote, { 'allow-http': true })).to.equal(why(remote, 'of HTTP_PROXY'))
      const failure = await createProxyFetch({ proxy: 'env' })(remote).catch((error: unknown) => error)
      expect(explainFailure(failure, { url: remote, profile: undefined }).message).to.equal(
        `${remote} was not called: the HTTP proxy ${away} of HTTP_PROXY cannot be reached (ECONNREFUSED); check that proxy`,
      )
    } finally {
      delete process.env['HTTP_PROXY']
    }
  })

  it('uses the proxy of the environment, except for hosts in NO_PROXY', async () => {
    let connects = 0
    const proxy = createServer()
    proxy.on('connect', (_request, socket) => {
      connects++
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
    })
    process.env['HTTP_PROXY'] = await listenAnywhere(proxy)
    try {
      const through = await openProxy('http://mcp.example/mcp', { 'allow-http': true })
      expect((await through.request(1, 'ping')).error).to.have.property('message')
      expect(connects).to.be.greaterThan(0)
      const before = connects
      process.env['NO_PROXY'] = 'mcp.example'
      const around = await openProxy('http://mcp.example/mcp', { 'allow-http': true })
      expect((await around.request(1, 'ping')).error?.message).to.match(/^http:\/\/mcp\.example\/mcp/)
      delete process.env['NO_PROXY']
      // Of this machine, as other programs have it; a proxy that was named by hand is for all.
      expect((await initialize(await openProxy(url))).result).to.have.property('serverInfo')
      expect(connects).to.equal(before)
      const byHand = await openProxy(url, { proxy: process.env['HTTP_PROXY'] as string })
      expect((await byHand.request(1, 'ping')).error).to.have.property('message')
      expect(connects).to.be.greaterThan(before)
    } finally {
      delete process.env['HTTP_PROXY']
      delete process.env['NO_PROXY']
    }
  })
})
