// Tests addField, which adds header fields to a response before its head is written.
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { createHttpServer } from '../../core/http/create-server.ts'
import { addField } from '../../core/http/response.ts'
import { sendRaw } from '../support/raw-http.ts'

const servers = new Set<Server>()
after(() => {
  for (const server of servers) server.close()
})

const LIMITS = { requestTimeout: 10_000, keepAliveTimeout: 5_000, writeTimeout: 10_000 }
const NEWS = { pipelined: () => undefined, slowReaders: () => undefined }

/** Both kinds of server, ours and somebody else's. */
const KINDS: ReadonlyArray<readonly [string, (serve: RequestListener) => Server]> = [
  ['addField on the host server', serve => createHttpServer(serve, LIMITS, NEWS).server],
  ['addField on another HTTP server', serve => createServer(serve)],
]

const WAYS: ReadonlyArray<readonly [string, RequestListener]> = [
  ['a list', (_, res) => res.writeHead(200, ['Content-Type', 'text/plain']).end()],
  ['an object', (_, res) => res.writeHead(200, { 'Content-Type': 'text/plain' }).end()],
  ['a reason and an object', (_, res) => res.writeHead(200, 'Fine', { 'Content-Type': 'text/plain' }).end()],
  [
    'a list, after one was set',
    (_, res) => res.setHeader('X-Set', '1').writeHead(200, ['Content-Type', 'text/plain']).end(),
  ],
  ['nothing but a status', (_, res) => res.setHeader('Content-Type', 'text/plain').writeHead(200).end()],
  ['no head at all', (_, res) => res.setHeader('Content-Type', 'text/plain').end()],
]

for (const [kind, create] of KINDS) {
  describe(kind, () => {
    async function fieldsOf(serve: RequestListener) {
      const server = create(serve)
      servers.add(server)
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      const { port } = server.address() as AddressInfo
      const { text } = await sendRaw(
        `http://127.0.0.1:${port}`,
        'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
      )
      const lines = (text.split('\r\n\r\n')[0] ?? '').split('\r\n').slice(1)
      return (name: string) =>
        lines.filter(line => line.toLowerCase().startsWith(`${name}: `)).map(line => line.split(': ')[1])
    }

    for (const [way, serve] of WAYS) {
      it(`sends added fields once if the head is written with ${way}`, async () => {
        const of = await fieldsOf((req, res) => {
          addField(res, 'X-One', 'a')
          addField(res, 'X-Many', 'b')
          addField(res, 'X-Many', 'c')
          serve(req, res)
        })
        expect([of('x-one'), of('x-many'), of('content-type')]).to.deep.equal([['a'], ['b', 'c'], ['text/plain']])
      })
    }

    it('prefers fields set with setHeader', async () => {
      const of = await fieldsOf((_, res) => {
        res.setHeader('X-One', 'theirs')
        addField(res, 'x-one', 'added')
        addField(res, 'x-one', 'again')
        res.writeHead(200, ['X-Two', '2']).end()
      })
      expect([of('x-one'), of('x-two')]).to.deep.equal([['theirs'], ['2']])
    })

    it('prefers fields given to writeHead', async () => {
      const heads: RequestListener[] = [
        (_, res) => res.writeHead(200, ['X-One', 'theirs']).end(),
        (_, res) => res.writeHead(200, { 'X-One': 'theirs' }).end(),
      ]
      for (const write of heads) {
        const of = await fieldsOf((req, res) => {
          addField(res, 'x-one', 'added')
          addField(res, 'X-Two', '2')
          write(req, res)
        })
        expect([of('x-one'), of('x-two')]).to.deep.equal([['theirs'], ['2']])
      }
    })

    it('rejects field values with line breaks', async () => {
      let thrown: unknown
      const of = await fieldsOf((_, res) => {
        try {
          addField(res, 'X-One', 'a\r\nX-Two: b')
          res.writeHead(200, ['Content-Type', 'text/plain'])
        } catch (error) {
          thrown = error
        }
        if (!res.headersSent) res.end()
        else res.destroy()
      })
      expect(thrown).to.have.property('code', 'ERR_INVALID_CHAR')
      expect(of('x-two')).to.deep.equal([])
    })
  })
}
