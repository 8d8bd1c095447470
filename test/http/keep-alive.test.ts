// Tests the time after which an idle connection is closed.
import { once } from 'node:events'
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

  it('is closed', async () => {
    const { url } = await startHost(CONFIG)
    const socket = await openSocket(url)
    socket.write(requestHead(url, { method: 'GET', path: '/livez', headers: { Connection: 'keep-alive' } }))
    expect(await readToEnd(socket)).to.match(/^HTTP\/1\.1 200 /)
  })
})
