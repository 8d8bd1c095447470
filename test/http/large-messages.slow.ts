// Tests the heap use of large messages while calls run or streams wait, measured by V8 after a full collection.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { eventually } from '../support/eventually.ts'
import { createGate } from '../support/gate.ts'
import { openSocket, parseAnswer, readToEnd, requestBytes } from '../support/raw-http.ts'
import { createMeta, modernRequest } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { openStreamingSession } from '../support/streaming-session.ts'

const MIB = 1024 * 1024
const LARGE = 10 * MIB
/** Of one copy, with all that comes and goes beside it. */
const ONE = 1.3 * LARGE

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

const turn = () => new Promise(resolve => setImmediate(resolve))

/** Bytes of what is left after a collection, in and outside of the heap, once what was before is gone. */
async function settledBytes(): Promise<number> {
  const quiet = 3
  const last: number[] = []
  return eventually('nothing more is freed', async () => {
    await turn()
    last.push(heldBytes())
    const some = last.slice(-quiet)
    return some.length === quiet && Math.max(...some) - Math.min(...some) < MIB / 8 ? (some[0] ?? 0) : 0
  })
}

function heldBytes(): number {
  collect()
  const { heapUsed, external, arrayBuffers } = process.memoryUsage()
  return heapUsed + Math.max(external, arrayBuffers)
}

const begun = createGate<void>()
const ended = createGate<void>()
const waits = defineTool({
  name: 'waits',
  input: { type: 'object', properties: { text: { type: 'string' } } },
  async handler() {
    begun.open()
    await ended.opened
    return 'done'
  },
})
/** Whose first message makes a stream of its answer. */
const answers = defineTool({
  name: 'answers',
  handler(_, { progress }) {
    progress(1)
    return 'x'.repeat(LARGE)
  },
})

const heldSince = (before: number) => async () => (await settledBytes()) - before

describe('Memory use of a 10 MiB message', () => {
  let url: string
  before(async () => {
    const toolsets = { all: [waits, answers] }
    ;({ url } = await startHost({ toolsets, routes: { '/': { toolsets: 'all' } }, http: { maxBodySize: 2 * LARGE } }))
  })
  after(stopHosts)

  const bytesOf = (name: string, args: object, meta?: Record<string, unknown>) => {
    const { headers, body } = modernRequest('tools/call', { name, arguments: args }, { ...(meta && { meta }) })
    return requestBytes(url, body, { headers })
  }

  it('holds arguments once while the call runs', async () => {
    const socket = await openSocket(url)
    const bytes = bytesOf('waits', { text: 'x'.repeat(LARGE) })
    const before = await settledBytes()
    socket.write(bytes)
    await begun.opened
    const held = (await settledBytes()) - before
    expect(held).to.be.within(0.9 * LARGE, ONE)
    ended.open()
    // Held by the test all the while.
    expect(bytes.length).to.be.greaterThan(LARGE)
    expect(parseAnswer(await readToEnd(socket)).status).to.equal(200)
  })

  it('holds a message once while it waits for a stream reader', async () => {
    const before = await settledBytes()
    const socket = (await openSocket(url)).pause()
    socket.write(bytesOf('answers', {}, createMeta({ progressToken: 'p' })))
    const held = await eventually('the answer waits', heldSince(before), bytes => bytes > LARGE / 2)
    expect(held).to.be.below(ONE)
    expect((await readToEnd(socket.resume())).length).to.be.greaterThan(LARGE)
  })

  it('holds a message twice if it is also stored for resumption', async () => {
    const session = await openStreamingSession(`${url}/`)
    const before = await settledBytes()
    const stream = await session.call('answers')
    stream.pause()
    const held = await eventually('the answer waits', heldSince(before), bytes => bytes > 1.5 * LARGE)
    expect(held).to.be.below(2 * ONE)
    stream.drop()
  })
})
