// Invalid HTTP requests over raw sockets: body size, framing and headers.
import { once } from 'node:events'
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { openSocket, parseAnswer, readToEnd, requestBytes, requestHead, sendRaw } from '../../support/raw-http.ts'
import { legacy, modern, modernRequest } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'

const LIMIT = 64 * 1024
const echo = defineTool({ name: 'echo', handler: () => 'alive' })

let url: string
before(async () => {
  const routes = { '/': { toolsets: 'all' } }
  ;({ url } = await startHost({ stateless: true, http: { maxBodySize: LIMIT }, toolsets: { all: [echo] }, routes }))
})
after(stopHosts)

describe('Invalid HTTP requests', () => {
  /** The process lives, and serves. */
  afterEach(async () => {
    const { message } = await modern(url, 'tools/call', { name: 'echo' })
    expect(message.result.content[0].text).to.equal('alive')
  })

  describe('Body size', () => {
    const fits = (size: number) => {
      const [head, tail] = ['{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"', '"}}']
      return head + 'x'.repeat(size - head.length - tail.length) + tail
    }

    it('accepts the limit exactly, and not one byte more', async () => {
      expect((await sendRaw(url, requestBytes(url, fits(LIMIT)))).message.result).to.deep.equal({})
      expect((await sendRaw(url, requestBytes(url, fits(LIMIT + 1)))).status).to.equal(413)
    })

    it('answers 413 to a too large Content-Length before reading, and closes the connection', async () => {
      const declared = { 'Content-Length': String(LIMIT + 1), Connection: 'keep-alive' }
      const { status, message } = await sendRaw(url, requestHead(url, { headers: declared }))
      expect([status, message.error.code]).to.deep.equal([413, -32000])
    })

    it('answers 413 to a chunked body beyond the limit, and closes the connection', async () => {
      const head = requestHead(url, { headers: { 'Transfer-Encoding': 'chunked', Connection: 'keep-alive' } })
      const socket = await openSocket(url)
      const answer = readToEnd(socket)
      const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`
      socket.write(head)
      // The body never ends: only its size can be the reason for the answer.
      for (let sent = 0; sent <= LIMIT; sent += 0x4000) socket.write(chunk)
      const { status, message } = parseAnswer(await answer)
      expect([status, message.error.code]).to.deep.equal([413, -32000])
    })
  })

  describe('HTTP framing', () => {
    const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'

    it('answers 400 to a truncated body if the client still listens', async () => {
      const headers = { 'Content-Length': '500' }
      const socket = await openSocket(url)
      const answer = readToEnd(socket)
      socket.end(requestHead(url, { headers }) + ping)
      expect(parseAnswer(await answer).status).to.equal(400)
      const gone = await openSocket(url)
      gone.write(requestHead(url, { headers }) + ping)
      gone.resetAndDestroy()
      await once(gone, 'close')
    })

    it('refuses ambiguous requests (request smuggling)', async () => {
      const twice = { 'Content-Length': ['40', '41'] }
      const both = { 'Content-Length': '40', 'Transfer-Encoding': 'chunked' }
      for (const headers of [twice, both, { 'Transfer-Encoding': 'chunked, identity' }, { 'Content-Length': '+40' }]) {
        expect((await sendRaw(url, requestHead(url, { headers }), ping)).status).to.equal(400)
      }
      const spaced = requestHead(url, { headers: { 'Content-Length ': '40' } })
      expect((await sendRaw(url, spaced, ping)).status).to.equal(400)
    })

    it('refuses requests without Host or with two', async () => {
      const { host } = new URL(url)
      expect((await sendRaw(url, requestBytes(url, ping, { headers: { Host: undefined } }))).status).to.equal(400)
      for (const hosts of [
        [host, 'evil.example'],
        ['evil.example', host],
      ]) {
        const { status } = await sendRaw(url, requestBytes(url, ping, { headers: { Host: hosts } }))
        expect([400, 403], hosts.join()).to.include(status)
      }
    })

    it('never accepts duplicate protocol headers as one', async () => {
      const { headers, body } = modernRequest('tools/call', { name: 'echo', arguments: {} })
      for (const name of ['MCP-Protocol-Version', 'Mcp-Method', 'Mcp-Name']) {
        const doubled = { ...headers, [name]: [headers[name] ?? '', headers[name] ?? ''] }
        const { status, message } = await sendRaw(url, requestBytes(url, body, { headers: doubled }))
        expect([status, message.error.code], name).to.deep.equal([400, -32020])
      }
    })

    it('refuses control characters in headers (response splitting)', async () => {
      for (const value of ['echo\rX-Injected: 1', 'echo\nX-Injected: 1', 'echo\u0000', 'a\r\n\tfolded']) {
        const { headers, body } = modernRequest('tools/call', { name: 'echo' }, { headers: { 'Mcp-Name': value } })
        const answer = await sendRaw(url, requestBytes(url, body, { headers }))
        expect(answer.status, JSON.stringify(value)).to.equal(400)
        expect(answer.headers.has('x-injected')).to.equal(false)
      }
      const hostile = { method: 'a\r\nX-Injected: 1', name: 'b\r\nX-Injected: 1', id: 'c\r\nX-Injected: 1' }
      const { headers, message } = await legacy(url, hostile.method, { name: hostile.name }, { id: hostile.id })
      expect([headers.get('x-injected'), message.id]).to.deep.equal([null, hostile.id])
    })

    it('refuses headers of extreme length', async () => {
      const { headers, body } = modernRequest('tools/list')
      const answer = await sendRaw(
        url,
        requestBytes(url, body, { headers: { ...headers, 'X-Long': 'x'.repeat(40_000) } }),
      )
      expect(answer.status).to.equal(431)
    })
  })
})
