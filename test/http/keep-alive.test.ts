// Tests the time after which an idle connection is closed.
import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import { requestHead } from '../support/raw-http.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

after(stopHosts)

const CONFIG = {
  toolsets: { none: [] },
  routes: { '/': { toolsets: 'none' } },
  plugins: { 'transport-streamable': {}, health: {} },
  http: { port: 0, keepAliveTimeout: 100, requestTimeout: 500 },
}

/** Milliseconds. Longer than `keepAliveTimeout` and the second that Node.js adds to it. */
const BLOCKED = 1_300

describe('An idle connection', () => {
  let url: string
  before(async () => {
    ;({ url } = await startHost(CONFIG))
  })

  const requestWith = (connection: string) =>
    requestHead(url, { method: 'GET', path: '/livez', headers: { Connection: connection } })

  /** A connection after its first response, and when the host ends it. */
  async function openIdle() {
    const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true })
    const ended = once(socket, 'end').then(() => socket.destroy())
    socket.write(requestWith('keep-alive'))
    const [head] = await once(socket, 'data')
    expect(String(head)).to.match(/^HTTP\/1\.1 200 /)
    await turn()
    return { socket, ended }
  }

  const PART = 'GET /livez HTTP/1.1\r\n'

  it('is closed if its client sends nothing or a part of a request', async () => {
    const [silent, slow] = await Promise.all([openIdle(), openIdle()])
    slow.socket.write(PART)
    await Promise.all([silent.ended, slow.ended])
  })

  it('stays open only if its next request arrived while the event loop was blocked', async () => {
    const [silent, slow, served] = await Promise.all([openIdle(), openIdle(), openIdle()])
    slow.socket.write(PART)
    served.socket.write(requestWith('close'))
    const answer = once(served.socket, 'data')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BLOCKED)
    expect(String(await answer)).to.match(/^HTTP\/1\.1 200 /)
    await Promise.all([silent.ended, slow.ended])
  })
})
