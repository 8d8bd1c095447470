// Tests the time after which an idle connection is closed.
import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import { openSocket, readToEnd, requestHead } from '../support/raw-http.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

const CONFIG = {
  toolsets: { none: [] },
  routes: { '/': { toolsets: 'none' } },
  plugins: { 'transport-streamable': {}, health: {} },
  http: { port: 0, keepAliveTimeout: 100 },
}

/** Later than the timeout below, and the second that Node.js 24 adds. */
const BLOCKED = 1_300

describe('An idle connection', () => {
  it('stays open if its next request arrived while the event loop was blocked', async () => {
    const { url } = await startHost(CONFIG)
    const request = (connection: string) =>
      requestHead(url, { method: 'GET', path: '/livez', headers: { Connection: connection } })
    const socket = await openSocket(url)
    socket.write(request('keep-alive'))
    await once(socket, 'data')
    await turn()
    socket.write(request('close'))
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BLOCKED)
    expect(await readToEnd(socket)).to.match(/^HTTP\/1\.1 200 /)
  })

  for (const isBlocked of [false, true])
    for (const [what, part] of [
      ['nothing', ''],
      ['a part of a request', 'GET /livez HTTP/1.1\r\n'],
    ] as const)
      it(`is closed if its client sends ${what}${isBlocked ? ' while the event loop is blocked' : ''}`, async () => {
        const { url } = await startHost({ ...CONFIG, http: { ...CONFIG.http, requestTimeout: 1_000 } })
        const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true })
        socket.write(requestHead(url, { method: 'GET', path: '/livez', headers: { Connection: 'keep-alive' } }))
        const [head] = await once(socket, 'data')
        expect(String(head)).to.match(/^HTTP\/1\.1 200 /)
        await turn()
        socket.write(part)
        if (isBlocked) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BLOCKED)
        await once(socket.resume(), 'end')
        socket.destroy()
      })
})
