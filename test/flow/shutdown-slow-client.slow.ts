// Tests that shutdown completes responses that clients are still reading.
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { concurrentIt } from '../support/concurrent-it.ts'
import { eventually } from '../support/eventually.ts'
import { openSocket, parseAnswer, readToEnd, requestBytes } from '../support/raw-http.ts'
import { createMeta, modernRequest } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

/** More than the system keeps for a connection of this machine. */
const LARGE = 8_000_000

const answers = defineTool({
  name: 'answers',
  handler(_, { progress }) {
    progress(1)
    return 'x'.repeat(LARGE)
  },
})

const start = (stateless: boolean) =>
  startHost({ stateless, toolsets: { all: [answers] }, routes: { '/': { toolsets: 'all' } } })

describe('shutdown with a slow client', () => {
  // Connections idle for seconds before they are closed, and all of it at once.
  const it = concurrentIt()
  after(stopHosts)

  for (const stateless of [true, false]) {
    for (const [kind, meta] of [
      ['JSON', undefined] as const,
      ['a stream', createMeta({ progressToken: 'p' })] as const,
    ]) {
      for (const handOver of [true, false]) {
        const how = `${stateless ? 'stateless' : 'with sessions'}, ${handOver ? 'with handover' : 'without handover'}`
        it(`sends the whole response: ${kind}, ${how}`, async () => {
          const { host, url } = await start(stateless)
          const { headers, body } = modernRequest(
            'tools/call',
            { name: 'answers', arguments: {} },
            { ...(meta && { meta }) },
          )
          const socket = await openSocket(url)
          socket.write(requestBytes(url, body, { headers: { ...headers, Connection: 'keep-alive' } }))
          await eventually('the answer begins', () => socket.bytesRead > 0)
          socket.pause()
          const closed = host.close({ handOver })
          // The port is closed, and so are connections that idle.
          await eventually('the port is left', () =>
            fetch(url).then(
              () => false,
              () => true,
            ),
          )
          const answer = parseAnswer(await readToEnd(socket.resume()))
          await closed
          expect(answer.status).to.equal(200)
          expect(answer.body.length).to.be.greaterThan(LARGE)
          if (meta === undefined)
            expect(answer.message).to.have.nested.property('result.content[0].text').of.length(LARGE)
        })
      }
    }
  }

  it('ends a stalled response at the end of the grace period', async () => {
    const { host, url } = await start(true)
    const { headers, body } = modernRequest('tools/call', { name: 'answers', arguments: {} })
    const socket = await openSocket(url)
    socket.write(requestBytes(url, body, { headers: { ...headers, Connection: 'keep-alive' } }))
    await eventually('the answer begins', () => socket.bytesRead > 0)
    socket.pause()
    await host.close({ grace: 200 })
    expect((await readToEnd(socket.resume())).length).to.be.below(LARGE)
  })
})
