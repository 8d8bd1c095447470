// Tests HTTP pipelining: clients that send requests ahead and disconnect leave no sessions, subscriptions or calls
// behind.
import { once } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import { defineResource, defineTool } from '../../core/index.ts'
import { definePlugin, type Services } from '../../core/internal.ts'
import type { ChangeFeed } from '../../core/transport.ts'
import { eventually } from '../support/eventually.ts'
import { createGate, type Gate } from '../support/gate.ts'
import { openSocket, readToEnd, requestBytes, requestHead } from '../support/raw-http.ts'
import { modernRequest } from '../support/rpc.ts'
import { listen } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

let held: Pick<Services, 'sessions'> & { readonly changes: ChangeFeed }
let running = 0
let begun: Gate
let most = 0

const look = definePlugin<Record<never, never>>({
  options: { type: 'object', additionalProperties: false, properties: {} },
  setup(given) {
    given.onReady(() => {
      const { sessions, changesOn } = given.services
      const [route] = given.routes
      if (route) held = { sessions, changes: changesOn(route) }
    })
  },
})
const large = 'x'.repeat(1024 * 1024)

const start = () => {
  running = most = 0
  begun = createGate()
  return startHost({
    toolsets: {
      all: [
        defineTool({
          name: 'wait',
          handler: (_args, { signal }) => {
            most = Math.max(most, ++running)
            begun.open()
            return new Promise((_, reject) => {
              signal.addEventListener('abort', () => {
                running--
                reject(signal.reason)
              })
            })
          },
        }),
        defineTool({
          name: 'large',
          handler: () => {
            most = Math.max(most, ++running)
            return large
          },
        }),
        defineResource({ name: 'note', uriTemplate: 'note://{name}', handler: () => 'text' }),
      ],
    },
    routes: { '/': { toolsets: 'all' } },
    plugins: { 'transport-streamable': {}, 'transport-sse': {}, look: look() },
  })
}

afterEach(stopHosts)

/** Fewer than the limit that closes a connection at once: the first request runs. */
const FEW = 10
const KEEP = { Connection: 'keep-alive' }
const times = (count: number, bytes: Buffer | string) => Buffer.concat(Array(count).fill(Buffer.from(bytes)))

/** The bytes of a request of 2026-07-28 that keeps the connection. */
function modernBytes(url: string, method: string, params: Record<string, unknown>) {
  const { headers, body } = modernRequest(method, params)
  return requestBytes(url, body, { headers: { ...headers, ...KEEP } })
}

/** Sends this, waits for `until`, and leaves. */
async function sendAndLeave(url: string, bytes: Buffer, until?: () => Promise<unknown>) {
  const socket = await openSocket(url)
  socket.write(bytes)
  await (until?.() ?? once(socket, 'data'))
  socket.destroy()
}

const noneLeft = (what: string, count: () => number) => eventually(`no ${what} left`, count, left => left === 0)

describe('HTTP pipelining', () => {
  it('leaves no HTTP+SSE session after a disconnect', async () => {
    const { url } = await start()
    const get = requestHead(url, { method: 'GET', path: '/sse', headers: { ...KEEP, Accept: 'text/event-stream' } })
    for (let client = 0; client < 3; client++) await sendAndLeave(url, times(FEW, get))
    await noneLeft('sessions', () => held.sessions.count)
  })

  it('closes a connection that pipelines 300 GET /sse and keeps no session', async () => {
    const { url } = await start()
    const get = requestHead(url, { method: 'GET', path: '/sse', headers: { ...KEEP, Accept: 'text/event-stream' } })
    const socket = await openSocket(url)
    const closed = once(socket, 'close')
    socket.write(times(300, get))
    socket.resume()
    await closed
    await noneLeft('sessions', () => held.sessions.count)
  })

  it('leaves no subscription after a disconnect and frees the slots of the IP address', async () => {
    const { url } = await start()
    const filter = { notifications: { resourceSubscriptions: ['note://a'] } }
    for (let client = 0; client < 3; client++) {
      await sendAndLeave(url, times(FEW, modernBytes(url, 'subscriptions/listen', filter)))
    }
    await noneLeft('subscriptions', () => held.changes.size)
    const streams = await Promise.all(Array.from({ length: 100 }, () => listen(url, filter.notifications)))
    const statuses = streams.map(({ status }) => status)
    expect(new Set(statuses)).to.deep.equal(new Set([200]))
    for (const stream of streams) stream.drop()
  })

  it('leaves no running call that would delay shutdown', async () => {
    const { url, host } = await start()
    const bytes = times(FEW, modernBytes(url, 'tools/call', { name: 'wait' }))
    await sendAndLeave(url, bytes, () => begun.opened)
    await noneLeft('calls', () => running)
    const report = await host.close({ grace: 60_000 })
    expect([most, report.cancelled]).to.deep.equal([1, 0])
  })

  it('rejects an unsupported Expect header once and closes the connection', async () => {
    const { url } = await start()
    const get = requestHead(url, { method: 'GET', headers: { ...KEEP, Expect: 'nope' } })
    const socket = await openSocket(url)
    const text = readToEnd(socket)
    socket.write(times(20_000, get))
    const answers = (await text.catch(() => '')).match(/HTTP\/1\.1 417/g)?.length ?? 0
    expect(answers).to.be.at.most(1)
  })

  it('runs few calls of a client that pipelines and does not read', async () => {
    const { url } = await start()
    const socket = await openSocket(url)
    socket.pause()
    socket.write(times(100, modernBytes(url, 'tools/call', { name: 'large' })))
    let before = -1
    while (before !== running) {
      before = running
      for (let count = 0; count < 200; count++) await turn()
    }
    expect(running).to.be.below(10)
    socket.destroy()
  })
})
