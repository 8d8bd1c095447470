// Tests endWith, which sends a whole response body in one socket write.
import { once } from 'node:events'
import type { RequestListener, Server } from 'node:http'
import { createServer } from 'node:http'
import { type AddressInfo, Socket } from 'node:net'
import { expect } from 'chai'
import { createHttpServer } from '../../core/http/create-server.ts'
import { endWith } from '../../core/http/response.ts'

const LIMITS = { requestTimeout: 10_000, keepAliveTimeout: 5_000, writeTimeout: 10_000 }
const NEWS = { pipelined: () => undefined, slowReaders: () => undefined }
const servers = new Set<Server>()
after(() => {
  for (const server of servers) server.close()
})

async function serve(server: Server): Promise<string> {
  servers.add(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const ours = (listener: RequestListener) => serve(createHttpServer(listener, LIMITS, NEWS).server)

/** Ends each answer with this text, whose length it says. */
const answering =
  (text: string, prepare: RequestListener = () => undefined): RequestListener =>
  (req, res) => {
    prepare(req, res)
    res.writeHead(200, ['Content-Type', 'text/plain', 'Content-Length', String(Buffer.byteLength(text))])
    endWith(res, text)
  }

/** How often sockets hand something to the system while `work` runs: `_write` of one piece, `_writev` of several. */
async function countWrites(work: () => Promise<unknown>) {
  const { _write, _writev } = Socket.prototype as unknown as Record<string, (...args: unknown[]) => void>
  const counted = { single: 0, joined: 0 }
  const count = (key: keyof typeof counted, write: typeof _write) =>
    function (this: Socket & { server?: object }, ...args: unknown[]) {
      if (this.server) counted[key]++
      return write?.apply(this, args)
    }
  Object.assign(Socket.prototype, { _write: count('single', _write), _writev: count('joined', _writev) })
  try {
    await work()
  } finally {
    Object.assign(Socket.prototype, { _write, _writev })
  }
  return counted
}

const TEXTS = { ascii: 'plain', latin1: 'déjà', more: 'zażółć 😀', long: 'x€'.repeat(300_000), none: '' }

describe('endWith', () => {
  for (const [name, text] of Object.entries(TEXTS)) {
    it(`sends the whole body: ${name}`, async () => {
      for (const url of [await ours(answering(text)), await serve(createServer(answering(text)))]) {
        for (let time = 0; time < 3; time++) {
          const response = await fetch(url)
          expect(await response.text()).to.equal(text)
        }
      }
    })
  }

  it('writes headers and body in one socket write', async () => {
    const url = await ours(answering(TEXTS.more))
    await (await fetch(url)).text()
    const counted = await countWrites(async () => {
      for (let time = 0; time < 10; time++) await (await fetch(url)).text()
    })
    expect(counted).to.deep.equal({ single: 10, joined: 0 })
  })

  it('calls patched `write` and `end` methods', async () => {
    for (const name of ['write', 'end'] as const) {
      const seen: unknown[] = []
      const url = await ours(
        answering('text', (_, res) => {
          const standard = res[name].bind(res) as (...args: unknown[]) => unknown
          Object.assign(res, {
            [name]: (...args: unknown[]) => {
              seen.push(args[0])
              return standard(...args)
            },
          })
        }),
      )
      expect(await (await fetch(url)).text()).to.equal('text')
      expect(seen.filter(Boolean), name).to.deep.equal(name === 'end' ? ['text'] : [])
    }
  })

  it('sends the body when a corked socket is uncorked', async () => {
    const url = await ours(
      answering('text', (_, res) => {
        res.socket?.cork()
        setTimeout(() => res.socket?.uncork(), 10)
      }),
    )
    expect(await (await fetch(url)).text()).to.equal('text')
  })

  it('emits `finish` before `close`', async () => {
    const told: string[] = []
    const url = await ours(
      answering('text', (_, res) => {
        for (const event of ['finish', 'close']) res.on(event, () => told.push(event))
      }),
    )
    await (await fetch(url)).text()
    await (await fetch(url)).text()
    expect(told.slice(0, 2)).to.deep.equal(['finish', 'close'])
  })
})
