// Rate limits and concurrency limits of tool calls.
import { expect } from 'chai'
import { type CallContext, defineTool, ToolError } from '../../../core/index.ts'
import type { RateLimitOptions } from '../../../plugins/rate-limit/index.ts'
import { eventually } from '../../support/eventually.ts'
import { createGate, type Gate } from '../../support/gate.ts'
import { modernRequest } from '../../support/rpc.ts'
import { nextMessage, openSession, postOpen, readWhole } from '../../support/session-client.ts'
import { stopHosts } from '../../support/start-host.ts'
import { taskClient } from '../tasks/support/task-client.ts'
import { atOnce, startLimited, statuses, TOOLS } from './limited-host.ts'

afterEach(stopHosts)

const DATED = { 'MCP-Protocol-Version': '2025-03-26' }

describe('rate-limit: tool call rate', () => {
  it('counts per rule and user, and a glob shares one count', async () => {
    const { call } = await startLimited({ tools: { 'search*': '4/1h' } })
    const ann = { 'X-User': 'ann' }
    const searching = await atOnce(20, index => call(ann, index % 2 ? 'search_web' : 'search_mail'))
    expect(statuses(searching)).to.deep.equal({ 200: 4, 429: 16 })
    expect(statuses(await atOnce(9, () => call(ann, 'say')))).to.deep.equal({ 200: 9 })
    expect(statuses(await atOnce(6, () => call({ 'X-User': 'bob' }, 'search_web')))).to.deep.equal({ 200: 4, 429: 2 })
    const { message, headers } = await call(ann, 'search_web')
    expect(message.error.message).to.match(/4 calls in 1h.* \d+ s$/)
    expect(message.error.data).to.include({ limit: 'tool' })
    expect(headers.get('ratelimit-policy')).to.equal('"tool";q=4;w=3600')
    expect(headers.get('retry-after')).to.equal(String(message.error.data.retryAfter))
  })

  it('counts all callers together if configured, and enforces every matching rule', async () => {
    const { call } = await startLimited({ tools: { '*': '3/1h', say: { limit: '4/1h', per: 'all' } } })
    const of = async (user: string, count: number) => statuses(await atOnce(count, () => call({ 'X-User': user })))
    expect(await of('ann', 3)).to.deep.equal({ 200: 3 })
    expect(await of('bob', 3)).to.deep.equal({ 200: 1, 429: 2 })
  })

  it('counts each call of a batch, but the HTTP request once', async () => {
    const { url } = await startLimited({ address: '2/1h', tools: { say: '5/1h' } })
    const batch = Array.from({ length: 20 }, (_, id) => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name: id % 2 ? 'say' : 'search_web', arguments: {} },
    }))
    const { status, message } = await readWhole(postOpen(`${url}/`, batch, DATED))
    expect(status).to.equal(200)
    const refused = message.filter(({ error }: { error?: object }) => error)
    expect(refused.map(({ error }: { error: { data: unknown } }) => error.data)).to.have.length(5)
    expect(refused[0].error.data).to.include({ reason: 'rate-limited', limit: 'tool' })
  })

  it('does not count calls of unknown tools', async () => {
    const { call } = await startLimited({ tools: { '*': '1/1h' } })
    for (let asked = 0; asked < 3; asked++) expect((await call({}, 'none')).message.error.code).to.equal(-32602)
    expect((await call()).status).to.equal(200)
    expect((await call()).status).to.equal(429)
  })

  it('does not count denied calls, also for a limit of all callers together', async () => {
    const { call } = await startLimited(
      { tools: { '*': { limit: '1/1h', per: 'all' } } },
      {
        toolsets: { all: [defineTool({ name: 'kept', access: 'users', handler: () => 'kept' })] },
        plugins: { 'tool-policy': { policies: { users: {} } } },
      },
    )
    for (let asked = 0; asked < 3; asked++) expect((await call({}, 'kept')).status).to.equal(401)
    expect((await call({ 'X-User': 'ann' }, 'kept')).status).to.equal(200)
    expect((await call({ 'X-User': 'ann' }, 'kept')).status).to.equal(429)
    expect((await call({}, 'kept')).status).to.equal(401)
  })

  it('applies across the sessions of a user', async () => {
    const { url } = await startLimited({ tools: { say: '2/1h' } }, { routes: { '/': { toolsets: 'all' } } })
    const found: number[] = []
    for (let count = 0; count < 3; count++) {
      const session = await openSession(`${url}/`)
      found.push((await session.request('tools/call', { name: 'say' })).status)
    }
    expect(found).to.deep.equal([200, 200, 429])
  })
})

/** A tool that ends as it is told to. */
function createEnding() {
  const begun: Array<{ readonly gate: Gate<() => string>; readonly ctx: CallContext }> = []
  let peak = 0
  let running = 0
  const tool = defineTool({
    name: 'long',
    async handler(_, ctx) {
      const gate = createGate<() => string>()
      begun.push({ gate, ctx })
      peak = Math.max(peak, ++running)
      try {
        const aborted = new Promise<never>((_resolve, reject) => {
          ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason), { once: true })
        })
        return (await Promise.race([gate.opened, aborted]))()
      } finally {
        running--
      }
    },
  })
  return { tool, begun, peak: () => peak }
}

async function startCapped(cap: object, more: object = {}) {
  const ending = createEnding()
  const started = await startLimited(cap, {
    toolsets: { all: [...TOOLS, ending.tool] },
    routes: { '/': { toolsets: 'all' } },
    ...more,
  })
  const long = (headers: Readonly<Record<string, string>> = {}) => {
    const request = modernRequest('tools/call', { name: 'long', arguments: {} })
    return postOpen(`${started.url}/`, request.body, { ...request.headers, ...headers })
  }
  const isRunning = (count: number) => eventually(`${count} calls to run`, () => ending.begun.length >= count)
  const whole = async (opened: ReturnType<typeof long>) => readWhole(opened)
  return { ...started, ...ending, long, whole, isRunning }
}

describe('rate-limit: concurrent tool calls', () => {
  it('limits the concurrent calls of a user, refuses more, and frees slots', async () => {
    const { long, whole, begun, isRunning, peak } = await startCapped({ concurrent: 3 })
    let refused = 0
    const answers = Array.from({ length: 20 }, async () => {
      const answer = await whole(long())
      if (answer.status === 429) refused++
      return answer
    })
    await eventually('17 refusals', () => refused === 17)
    const other = whole(long({ 'X-User': 'bob' }))
    await isRunning(4)
    for (const { gate } of begun) gate.open(() => 'done')
    expect(statuses(await Promise.all(answers))).to.deep.equal({ 200: 3, 429: 17 })
    expect((await other).status).to.equal(200)
    expect(peak()).to.equal(4)
  })

  it('reports the concurrency limit in the RateLimit headers', async () => {
    const { long, whole, begun, isRunning } = await startCapped({ tools: { long: { concurrent: 1 } } })
    const first = whole(long())
    await isRunning(1)
    const { status, headers, message } = await whole(long())
    expect(status).to.equal(429)
    expect(headers['ratelimit-policy']).to.equal('"concurrent";q=1;qu="concurrent-requests"')
    expect(headers['ratelimit']).to.equal('"concurrent";r=0')
    expect(headers['retry-after']).to.equal('1')
    expect(message.error.message).to.match(/ 1 call .* 1 s$/)
    begun[0]?.gate.open(() => 'done')
    await first
  })

  it('applies to all callers together if configured', async () => {
    const { long, whole, begun, isRunning } = await startCapped({ tools: { long: { concurrent: 1, per: 'all' } } })
    const first = whole(long({ 'X-User': 'ann' }))
    await isRunning(1)
    expect((await whole(long({ 'X-User': 'bob' }))).status).to.equal(429)
    begun[0]?.gate.open(() => 'done')
    expect((await first).status).to.equal(200)
  })

  const ways: Record<string, (host: Awaited<ReturnType<typeof startCapped>>, round: number) => Promise<unknown>> = {
    async done({ long, whole, begun, isRunning }, round) {
      const answer = whole(long())
      await isRunning(round)
      begun[round - 1]?.gate.open(() => 'done')
      return answer
    },
    async 'a tool error'({ long, whole, begun, isRunning }, round) {
      const answer = whole(long())
      await isRunning(round)
      begun[round - 1]?.gate.open(() => {
        throw new ToolError('no luck')
      })
      return answer
    },
    async thrown({ long, whole, begun, isRunning }, round) {
      const answer = whole(long())
      await isRunning(round)
      begun[round - 1]?.gate.open(() => {
        throw new TypeError('a bug')
      })
      return answer
    },
    async 'the client gone'({ long, isRunning }, round) {
      const opened = long()
      await isRunning(round)
      const stream = await opened
      stream.drop()
    },
    async 'cancelled in a session'({ url, isRunning }, round) {
      const session = await openSession(`${url}/`)
      const stream = await session.call('long', {}, { id: 'x' })
      await isRunning(round)
      await session.send({ method: 'notifications/cancelled', params: { requestId: 'x' } })
      await nextMessage(stream)
    },
    async 'the session ended'({ url, isRunning }, round) {
      const session = await openSession(`${url}/`)
      const stream = await session.call('long', {}, { id: 'y' })
      await isRunning(round)
      await session.end()
      stream.drop()
    },
    async 'its time over'({ url, isRunning }, round) {
      const session = await openSession(`${url}/`)
      const answer = session.request('tools/call', { name: 'long' })
      await isRunning(round)
      return answer
    },
  }
  for (const [way, end] of Object.entries(ways)) {
    it(`frees the slot after the call ends: ${way}`, async () => {
      const timed = way === 'its time over' ? { tools: { callTimeout: '60ms' } } : {}
      const host = await startCapped({ concurrent: 1, tools: { long: { concurrent: 1 } } }, timed)
      let ended = 0
      for (let round = 1; round <= 2; round++) {
        await end(host, round)
        ended++
        await eventually('the place to be free', async () => (await host.call({}, 'say')).status === 200)
      }
      expect([ended, host.begun.length, host.peak()]).to.deep.equal([2, 2, 1])
    })
  }
})

describe('rate-limit: tasks', () => {
  const start = (options: RateLimitOptions) => {
    const slow = defineTool({ name: 'slow', task: 'optional', handler: () => 'done' })
    const plugins = { tasks: { pollInterval: '20ms' } } as const
    return startLimited(options, { toolsets: { all: [...TOOLS, slow] }, plugins })
  }

  it('counts a task once, for each limit', async () => {
    const { url, call } = await start({ concurrent: 1, tools: { slow: { limit: '3/1h', concurrent: 1 } } })
    const ann = taskClient(url, 'ann')
    for (let count = 0; count < 3; count++) {
      const { status, result } = await ann.until(await ann.begin('slow'))
      expect([status, result?.content[0].text]).to.deep.equal(['completed', 'done'])
    }
    expect((await ann.call('slow')).status).to.equal(429)
    expect((await call({ 'X-User': 'ann' }, 'say')).status).to.equal(200)
  })
})
