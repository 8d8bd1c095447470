// Tests that dropped GET streams of a session leave no connection memory behind.
import { ServerResponse } from 'node:http'
import { queryObjects } from 'node:v8'
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { eventually } from '../support/eventually.ts'
import { openSocket, requestBytes } from '../support/raw-http.ts'
import { openSession } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const tool = defineTool({ name: 'tool', handler: () => 'done' })
const SESSIONS = 8
const GETS = 3

const countResponses = () => Number(queryObjects(ServerResponse, { format: 'count' }))

describe('Dropped GET streams of a session', () => {
  // Each look goes through all of the heap.
  after(stopHosts)

  it('release their responses', async () => {
    const { url } = await startHost({ toolsets: { all: [tool] }, routes: { '/': { toolsets: 'all' } } })
    const drop = async (id: string) => {
      const socket = await openSocket(url)
      const headers = { Accept: 'text/event-stream', 'Mcp-Session-Id': id, Connection: 'keep-alive' }
      socket.write(requestBytes(url, '', { method: 'GET', headers: { ...headers, 'Content-Type': undefined } }))
      await eventually('the stream begins', () => socket.bytesRead > 0)
      socket.destroy()
    }
    const before = countResponses()
    for (let session = 0; session < SESSIONS; session++) {
      const { id } = await openSession(url)
      for (let get = 0; get < GETS; get++) await drop(id)
    }
    const left = await eventually(
      'they are forgotten',
      () => countResponses() - before,
      count => count < SESSIONS,
    )
    expect(left).to.be.below(SESSIONS)
  })
})
