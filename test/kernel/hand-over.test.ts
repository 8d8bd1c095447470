// Tests port hand-over: the old process stops accepting connections and drains the open ones.
import { once } from 'node:events'
import { connect } from 'node:net'
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { eventually } from '../support/eventually.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { modern } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

after(stopHosts)

const CONFIG = {
  toolsets: { all: [defineTool({ name: 'echo', handler: () => 'echoed' })] },
  routes: { '/': { toolsets: 'all' } },
}

const REQUEST = 'GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'

/** A connection; `read` resolves with the next answer, or '' where the connection ended. */
async function open(url: string) {
  const { port } = new URL(url)
  const socket = connect(Number(port), '127.0.0.1').setEncoding('utf8')
  await once(socket, 'connect')
  const ended = once(socket, 'end').then(() => [''])
  return {
    send: () => void socket.write(REQUEST),
    close: () => void socket.destroy(),
    read: async () => String((await Promise.race([once(socket, 'data'), ended]))[0]),
    ended,
  }
}

async function connectUntilRefused(url: string) {
  const taken: Awaited<ReturnType<typeof open>>[] = []
  const attempt = async () => {
    const opened = await open(url).catch((error: NodeJS.ErrnoException) => error)
    if (opened instanceof Error) return opened.code
    taken.push(opened)
    return undefined
  }
  return { refused: await eventually('a port that refuses', attempt), taken }
}

describe('Port hand-over', () => {
  it('refuses new connections and closes each open one after one more response', async () => {
    const { host, url } = await startHost({
      ...CONFIG,
      plugins: { health: {}, 'transport-streamable': {} },
      http: { port: 0, keepAliveTimeout: '1h' },
    })
    const [used, fresh] = [await open(url), await open(url)]
    used.send()
    expect(await used.read()).to.match(/^HTTP\/1\.1 200[\s\S]*\r\nConnection: keep-alive\r\n/)
    const handedOver = host.handOver()
    // What came until the port was closed is answered too.
    const { taken, refused } = await connectUntilRefused(url)
    expect(refused).to.equal('ECONNREFUSED')
    for (const connection of [used, fresh, ...taken]) {
      connection.send()
      expect(await connection.read()).to.match(/^HTTP\/1\.1 200[\s\S]*\r\nConnection: close\r\n[\s\S]*"status":"ready"/)
      await connection.ended
    }
    await handedOver
    expect(await host.close()).to.deep.equal({ finished: 0, cancelled: 0 })
  })

  it('waits for an idle connection up to keepAliveTimeout', async () => {
    const { host, url } = await startHost({
      ...CONFIG,
      plugins: { health: {}, 'transport-streamable': {} },
      http: { port: 0, keepAliveTimeout: 100 },
    })
    const idle = await open(url)
    idle.send()
    expect(await idle.read()).to.match(/^HTTP\/1\.1 200/)
    await host.handOver()
    expect(await idle.read()).to.equal('')
    await host.close()
  })

  it('waits for the response of a running call', async () => {
    const puppet = createPuppet()
    const { host, url } = await startHost({
      toolsets: { all: [puppet.tool] },
      routes: { '/': { toolsets: 'all', stateless: true } },
      http: { port: 0, keepAliveTimeout: 500 },
    })
    const running = modern(url, 'tools/call', { name: 'puppet', arguments: { name: 'running' } })
    const { finish } = await puppet.call('running')
    let over = false
    const handedOver = host.handOver().then(() => {
      over = true
    })
    const { taken } = await connectUntilRefused(url)
    for (const connection of taken) connection.close()
    expect(over).to.equal(false)
    finish('done')
    expect((await running).status).to.equal(200)
    await handedOver
    await host.close()
  })
})
