// Tests that a change notification is serialized once and written once per stream.
import { Socket } from 'node:net'
import { expect } from 'chai'
import { type CallContext, defineTool } from '../../core/index.ts'
import { modern, modernRequest } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { exchange, type StreamExchange } from '../support/stream-exchange.ts'
import { openStreamingSession } from '../support/streaming-session.ts'

const LISTENERS = 20
const SESSIONS = 10
/** So that nobody has more than one caller may. */
const addressOf = (index: number) => `127.0.1.${1 + (index % 8)}`

type Written = Record<'_write' | '_writev', (this: Socket, ...args: readonly unknown[]) => void>

/** Counts serialized objects, and writes per socket of the host at `port`, while `act` runs and in the next turn. */
async function countWhile(port: number, act: () => void) {
  const { stringify } = JSON
  const socket = Socket.prototype as unknown as Written
  const own = { _write: socket._write, _writev: socket._writev }
  const writes = new Map<Socket, number>()
  let serialized = 0
  JSON.stringify = new Proxy(stringify, {
    apply(_, self, args) {
      if (typeof args[0] === 'object') serialized++
      return Reflect.apply(stringify, self, args)
    },
  })
  for (const name of ['_write', '_writev'] as const) {
    socket[name] = function (...args) {
      if (this.localPort === port) writes.set(this, (writes.get(this) ?? 0) + 1)
      own[name].call(this, ...args)
    }
  }
  try {
    act()
    await new Promise(resolve => setImmediate(resolve))
  } finally {
    JSON.stringify = stringify
    Object.assign(socket, own)
  }
  return { serialized, streams: writes.size, most: Math.max(...writes.values()) }
}

describe(`Change notification for ${LISTENERS} subscriptions and ${SESSIONS} sessions`, () => {
  after(stopHosts)

  it('is serialized once and written once per stream', async () => {
    let host: CallContext['host'] | undefined
    const keep = defineTool({
      name: 'keep',
      handler(_, ctx) {
        host = ctx.host
        return ''
      },
    })
    const { url } = await startHost({ toolsets: { all: [keep] }, routes: { '/': { toolsets: 'all' } } })
    await modern(url, 'tools/call', { name: 'keep' })
    const extra = defineTool({ name: 'extra', handler: () => '' })
    // What making the change takes by itself, after the first time.
    host?.tools.add(extra)
    host?.tools.remove('extra')
    const port = Number(new URL(url).port)
    const alone = await countWhile(port, () => host?.tools.add(extra))
    const streams: StreamExchange[] = []
    for (let index = 0; index < LISTENERS; index++) {
      const { headers, body } = modernRequest('subscriptions/listen', { notifications: { toolsListChanged: true } })
      const base = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
      const all = { ...base, ...(headers as Record<string, string>) }
      const localAddress = addressOf(index)
      const stream = await exchange(`${url}/`, { method: 'POST', headers: all, body, localAddress })
      expect((await stream.next())?.message.method).to.equal('notifications/subscriptions/acknowledged')
      streams.push(stream)
    }
    for (let index = 0; index < SESSIONS; index++) {
      const session = await openStreamingSession(`${url}/`, { localAddress: addressOf(index) })
      const stream = await session.get()
      // The empty event to come back to.
      await stream.next()
      streams.push(stream)
    }
    host?.tools.remove('extra')
    await Promise.all(streams.map(stream => stream.next()))
    const counted = await countWhile(port, () => host?.tools.add(extra))
    const told = await Promise.all(streams.map(stream => stream.next()))

    expect(counted).to.deep.equal({ serialized: alone.serialized + 1, streams: LISTENERS + SESSIONS, most: 1 })
    expect(new Set(told.map(event => event?.message.method))).to.deep.equal(
      new Set(['notifications/tools/list_changed']),
    )
    for (const stream of streams) stream.drop()
  })
})
