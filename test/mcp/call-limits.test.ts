// Tests call limits: `concurrency` of tools and `tools.limits`, with queueing and rejection, in every protocol version.
import { expect } from 'chai'
import { defineTool, type ToolDefinition, type ToolReturn } from '../../core/index.ts'
import { definePlugin } from '../../core/internal.ts'
import {
  MAX_PAUSED_PER_SLOT,
  MAX_PAUSED_PER_SLOT_AND_OWNER,
  MAX_WAITING_CALLS,
  MAX_WAITING_CALLS_PER_OWNER,
} from '../../core/mcp/client-limits.ts'
import { HANDSHAKE_REVISIONS, MODERN_REVISION, REVISIONS } from '../../core/transport.ts'
import { eventually } from '../support/eventually.ts'
import { createGate, type Gate } from '../support/gate.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { modernRequest, type RpcMessage } from '../support/rpc.ts'
import { nextMessage, openSession, postOpen, readRest, readWhole, type WholeAnswer } from '../support/session-client.ts'
import { type StartOptions, startHost, stopHosts, type TestConfig } from '../support/start-host.ts'
import type { StreamExchange } from '../support/stream-exchange.ts'

/** A tool whose runs the test ends one by one, and which says how many there were. */
function createHeld(name: string, settings: Partial<Pick<ToolDefinition, 'concurrency' | 'timeout'>>) {
  const runs: Array<{ readonly mark: unknown; readonly gate: Gate; readonly signal: AbortSignal }> = []
  const ran: unknown[] = []
  let most = 0
  let wake = () => {}
  const tool = defineTool({
    name,
    ...settings,
    input: { type: 'object', properties: { mark: { type: ['string', 'number'] } } },
    async handler({ mark }, { signal }) {
      const run = { mark, gate: createGate(), signal }
      runs.push(run)
      ran.push(mark)
      wake()
      most = Math.max(most, runs.length)
      await run.gate.opened
      runs.splice(runs.indexOf(run), 1)
      return `ran ${mark}`
    },
  })
  return {
    tool,
    /** Those that run now. */
    runs,
    /** Marks of all that ever ran, in order. */
    ran,
    most: () => most,
    /** Waits until `count` runs have started. */
    async haveRun(count: number) {
      while (ran.length < count) {
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
    },
    endOne: () => runs[0]?.gate.open(),
  }
}

/** What the host offers to be measured by. */
const figures = new Map<string, () => Array<readonly [number, Record<string, string>]>>()
const counted = new Map<string, number>()
const reader = definePlugin<Record<never, never>>({
  options: { type: 'object', additionalProperties: false, properties: {} },
  setup({ metrics: offered }) {
    offered.readBy({
      gauge(figure, read) {
        figures.set(figure.name, () => {
          const found = read()
          return typeof found === 'number' ? [[found, {}]] : ([...found] as Array<[number, Record<string, string>]>)
        })
      },
      counter: figure => value => void counted.set(figure.name, (counted.get(figure.name) ?? 0) + value),
      histogram: () => () => undefined,
    })
  },
})

/** Calls of a tool that run, or wait. */
const countOf = (tool: string, state: 'running' | 'waiting'): number =>
  figures
    .get('mcp_host_tool_calls')?.()
    .find(([, labels]) => labels['tool'] === tool && labels['state'] === state)?.[0] ?? 0

const waitingAre = (tool: string, count: number) =>
  eventually(
    `${count} calls wait`,
    () => countOf(tool, 'waiting'),
    found => found === count,
  )

const serve = (
  tools: ReadonlyArray<{ readonly tool: ToolDefinition }>,
  more: Partial<TestConfig> = {},
  options: StartOptions = {},
) =>
  startHost(
    {
      toolsets: { all: tools.map(({ tool }) => tool) },
      routes: { '/': { toolsets: 'all' } },
      ...more,
      plugins: { 'transport-streamable': {}, reader: reader() },
    },
    undefined,
    options,
  )

type Answer = Pick<WholeAnswer, 'status' | 'headers' | 'message'>

/** Opens a call as a client of 2026-07-28, from an address of this machine. */
function openModern(url: string, name: string, mark: unknown, localAddress = '127.0.0.1', params = {}) {
  const { headers, body } = modernRequest('tools/call', { name, arguments: { mark }, ...params })
  return postOpen(url, body, headers, { localAddress })
}
const modern = (...args: Parameters<typeof openModern>): Promise<Answer> => readWhole(openModern(...args))

/** What calls a tool in a revision: with a session, or request by request. */
async function callerOf(url: string, revision: string): Promise<(name: string, mark: unknown) => Promise<Answer>> {
  if (revision === MODERN_REVISION) return (name, mark) => modern(url, name, mark)
  const session = await openSession(url, { revision })
  return (name, mark) => session.request('tools/call', { name, arguments: { mark } })
}

const textOf = ({ message }: { readonly message: RpcMessage }): string => message.result?.content[0].text

describe('Tool concurrency limit', () => {
  after(stopHosts)

  for (const revision of REVISIONS) {
    it(`queues calls over the limit in order: ${revision}`, async () => {
      const held = createHeld('held', { concurrency: 3 })
      const { url } = await serve([held])
      const call = await callerOf(url, revision)
      const answers: Promise<Answer>[] = []
      for (let mark = 0; mark < 6; mark++) {
        answers.push(call('held', mark))
        await eventually(
          'it runs or waits',
          () => held.runs.length + countOf('held', 'waiting'),
          sum => sum === mark + 1,
        )
      }
      expect([held.runs.length, countOf('held', 'running'), countOf('held', 'waiting')]).to.deep.equal([3, 3, 3])
      for (let ended = 0; ended < 6; ended++) {
        await held.haveRun(ended + 1)
        held.endOne()
      }
      const texts = (await Promise.all(answers)).map(textOf)
      expect(texts).to.deep.equal(texts.map((_, mark) => `ran ${mark}`))
      expect(held.ran).to.deep.equal(texts.map((_, mark) => mark))
      expect([held.most(), countOf('held', 'running'), countOf('held', 'waiting')]).to.deep.equal([3, 0, 0])
    })
  }

  it('applies to each request of a batch and rejects the excess', async () => {
    const held = createHeld('held', { concurrency: 2 })
    const { url } = await serve([held])
    const session = await openSession(url, { revision: '2025-03-26' })
    const batch = Array.from({ length: 50 }, (_, id) => {
      return { jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'held', arguments: { mark: id } } }
    })
    const answer = session.send(batch)
    await waitingAre('held', MAX_WAITING_CALLS_PER_OWNER)
    for (let ended = 0; ended < 2 + MAX_WAITING_CALLS_PER_OWNER; ended++) {
      await held.haveRun(ended + 1)
      held.endOne()
    }
    const messages = (await answer).messages.flat() as RpcMessage[]
    const refused = messages.filter(({ error }) => error !== undefined)
    expect([messages.length, refused.length, held.most()]).to.deep.equal([50, 50 - 34, 2])
    expect(new Set(refused.map(({ error }) => error.code))).to.deep.equal(new Set([-32600]))
  })

  it('limits the queue per caller and in total, with 429 and Retry-After', async () => {
    const held = createHeld('held', { concurrency: 1 })
    const { url } = await serve([held])
    const before = counted.get('mcp_host_tool_calls_refused_total') ?? 0
    const sent = MAX_WAITING_CALLS_PER_OWNER + 10
    const greedy = Array.from({ length: sent }, (_, mark) => modern(url, 'held', `greedy ${mark}`, '127.0.0.2'))
    let refused: Answer[] = []
    void Promise.all(greedy.map(answer => answer.then(one => one.status === 429 && refused.push(one))))
    await eventually(
      'the rest is refused',
      () => refused.length,
      count => count === sent - 1 - MAX_WAITING_CALLS_PER_OWNER,
    )
    expect(countOf('held', 'waiting')).to.equal(MAX_WAITING_CALLS_PER_OWNER)
    const [{ headers, message }] = refused as [Answer]
    expect(headers['retry-after']).to.equal('1')
    expect(message.error).to.deep.include({
      code: -32600,
      data: { reason: 'busy', limit: 'concurrency', retryAfter: 1, retryable: true },
    })

    const modest = modern(url, 'held', 'modest', '127.0.0.3')
    await waitingAre('held', MAX_WAITING_CALLS_PER_OWNER + 1)
    const others: Promise<Answer>[] = []
    for (let mark = 0; mark < MAX_WAITING_CALLS - MAX_WAITING_CALLS_PER_OWNER - 1; mark++) {
      others.push(modern(url, 'held', `other ${mark}`, `127.0.0.${4 + (mark % 8)}`))
    }
    await waitingAre('held', MAX_WAITING_CALLS)
    const late = await modern(url, 'held', 'late', '127.0.0.100')
    expect([late.status, late.message.error.data.reason]).to.deep.equal([429, 'busy'])
    expect(late.message.error.message).to.include('and 256 calls are queued')

    for (let ended = 0; ended < 1 + MAX_WAITING_CALLS; ended++) {
      await held.haveRun(ended + 1)
      held.endOne()
    }
    const statuses = (await Promise.all([...greedy, modest, ...others])).map(({ status }) => status)
    const served = statuses.filter(status => status === 200).length
    expect([served, held.ran.length, held.most()]).to.deep.equal([1 + MAX_WAITING_CALLS, 1 + MAX_WAITING_CALLS, 1])
    const tally = (counted.get('mcp_host_tool_calls_refused_total') ?? 0) - before
    expect(tally).to.equal(refused.length + 1)
    refused = []
  })

  it('schedules queued calls fairly between callers', async () => {
    const held = createHeld('held', { concurrency: 2 })
    const { url } = await serve([held])
    const call = (mark: string, address: string) => modern(url, 'held', mark, address)
    const greedy = Array.from({ length: 2 + MAX_WAITING_CALLS_PER_OWNER }, (_, mark) =>
      call(`greedy ${mark}`, '127.0.0.2'),
    )
    await waitingAre('held', MAX_WAITING_CALLS_PER_OWNER)
    const modest = [call('modest 0', '127.0.0.3'), call('modest 1', '127.0.0.3'), call('other 0', '127.0.0.4')]
    await waitingAre('held', MAX_WAITING_CALLS_PER_OWNER + 3)
    const answers = [...greedy, ...modest]
    for (let ended = 0; ended < answers.length; ended++) {
      await eventually(
        'all places are taken',
        () => held.runs.length,
        count => count === Math.min(2, answers.length - ended),
      )
      held.endOne()
    }
    for (const { status } of await Promise.all(answers)) expect(status).to.equal(200)
    const [greedyFirst, others] = [held.ran.slice(0, 2), held.ran.slice(2, 6).map(mark => String(mark).split(' ')[0])]
    expect(greedyFirst.every(mark => String(mark).startsWith('greedy'))).to.equal(true)
    // By turns: 34 calls of one hold up the others for a call each.
    expect(others.slice(0, 3).sort()).to.deep.equal(['greedy', 'modest', 'other'])
    expect(others[3]).to.equal('modest')
  })

  it('removes a queued call on disconnect or cancellation', async () => {
    const held = createHeld('held', { concurrency: 1 })
    const { url } = await serve([held])
    const first = modern(url, 'held', 'first')
    await eventually('it runs', () => held.runs.length === 1)
    for (const revision of HANDSHAKE_REVISIONS) {
      const session = await openSession(url, { revision })
      const waiting = session.request('tools/call', { name: 'held', arguments: { mark: revision } }, { id: 'w' })
      waiting.catch(() => undefined)
      await waitingAre('held', 1)
      await session.send({ method: 'notifications/cancelled', params: { requestId: 'w' } })
      await waitingAre('held', 0)
    }
    // What a client does in 2026-07-28 to cancel.
    const gone = new AbortController()
    const { headers, body } = modernRequest('tools/call', { name: 'held', arguments: { mark: 'gone' } })
    const request = { method: 'POST', body, headers: headers as Record<string, string>, signal: gone.signal }
    const base = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
    const dropped = fetch(url, { ...request, headers: { ...base, ...request.headers } }).catch(() => 'dropped')
    await waitingAre('held', 1)
    const last = modern(url, 'held', 'last')
    await waitingAre('held', 2)
    gone.abort()
    expect(await dropped).to.equal('dropped')
    await waitingAre('held', 1)
    held.endOne()
    await eventually('the last one runs', () => held.runs.some(({ mark }) => mark === 'last'))
    held.endOne()
    expect([textOf(await first), textOf(await last)]).to.deep.equal(['ran first', 'ran last'])
    expect(held.ran).to.deep.equal(['first', 'last'])
  })

  it('keeps the slot of a timed-out handler that still runs; queued calls time out', async () => {
    const held = createHeld('held', { concurrency: 1, timeout: '120ms' })
    const { url, log } = await serve([held])
    const first = await modern(url, 'held', 'deaf')
    expect(textOf(first)).to.match(/^held.*120 ms$/)
    expect([held.runs.length, held.runs[0]?.signal.aborted]).to.deep.equal([1, true])
    const second = await modern(url, 'held', 'behind')
    const why = 'it did not start within 120 ms; at most 1 call of this tool can run at once'
    expect([second.message.result.isError, textOf(second)]).to.deep.equal([
      true,
      `held: The call took too long: ${why}`,
    ])
    expect([countOf('held', 'running'), countOf('held', 'waiting')]).to.deep.equal([1, 0])
    held.endOne()
    await eventually('its place is free', () => countOf('held', 'running') === 0)
    expect(held.ran).to.deep.equal(['deaf'])
    expect(log.filter(({ level }) => level === 'error')).to.deep.equal([])
  })

  it('counts queueing time toward the call timeout', async () => {
    const held = createHeld('held', { concurrency: 1, timeout: '1500ms' })
    const free = createHeld('free', { timeout: '1500ms' })
    const clock = createManualClock()
    const { url } = await serve([held, free], {}, { clock })
    const first = modern(url, 'held', 'first')
    await eventually('it runs', () => held.runs.length === 1)
    const ended: string[] = []
    const note = (answer: Promise<Answer>) => answer.then(one => ended.push(textOf(one)))
    const second = note(modern(url, 'held', 'second'))
    await waitingAre('held', 1)
    // The second call runs after the third has begun, and its time is over before that of the third.
    await clock.advance(500)
    const third = note(modern(url, 'free', 'third'))
    await eventually('it runs', () => free.runs.length === 1)
    held.endOne()
    expect(textOf(await first)).to.equal('ran first')
    await eventually('the second runs', () => held.runs.some(({ mark }) => mark === 'second'))
    await clock.advance(1_000)
    await second
    await clock.advance(500)
    await third
    expect(ended[0]).to.match(/^held: .*1500 ms.*\d+/)
    expect(ended[1]).to.match(/^free.*1500 ms$/)
    held.endOne()
    free.endOne()
  })

  it('releases the slot after errors, elicitation requests and invalid request state', async () => {
    let runs = 0
    const odd = defineTool({
      name: 'odd',
      concurrency: 1,
      input: { type: 'object', properties: { mark: { type: 'string' } } },
      handler({ mark }, { elicit }): ToolReturn | Promise<ToolReturn> {
        runs++
        if (mark === 'throws') throw new Error('at once')
        if (mark === 'rejects') return Promise.reject(new Error('later'))
        if (mark === 'asks') return elicit({ message: '?', requestedSchema: { type: 'object', properties: {} } })
        return mark
      },
    })
    const { url } = await serve([{ tool: odd as ToolDefinition }])
    const meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } } }
    for (let round = 0; round < 10; round++) {
      for (const mark of ['throws', 'rejects', 'plain']) expect((await modern(url, 'odd', mark)).status).to.equal(200)
      const { headers, body } = modernRequest('tools/call', { name: 'odd', arguments: { mark: 'asks' } }, { meta })
      expect((await readWhole(postOpen(url, body, headers))).message.result.resultType).to.equal('input_required')
      const lie = await modern(url, 'odd', 'lie', '127.0.0.1', { requestState: 'made up' })
      expect(lie.message.error.code).to.equal(-32602)
      // Wrong arguments never had one.
      expect(textOf(await modern(url, 'odd', 5))).to.include('Invalid arguments')
    }
    expect([runs, countOf('odd', 'running'), countOf('odd', 'waiting')]).to.deep.equal([40, 0, 0])
  })
})

describe('Tool concurrency limit: handlers that wait for their client', () => {
  after(stopHosts)

  it('leave their slot, and get one again before calls that have not run', async () => {
    const began: unknown[] = []
    const gates = new Map<unknown, Gate>()
    const tool = defineTool({
      name: 'asks',
      concurrency: 1,
      input: { type: 'object', properties: { mark: { type: 'string' }, ask: { type: 'boolean' } } } as const,
      async handler({ mark, ask = false }, { elicit }) {
        if (ask)
          await elicit({ message: '?', requestedSchema: { type: 'object', properties: {} } }).catch(() => undefined)
        began.push(mark)
        const gate = createGate()
        gates.set(mark, gate)
        await gate.opened
        return `ran ${mark}`
      },
    })
    const { url } = await serve([{ tool: tool as ToolDefinition }])
    const session = await openSession(url, { capabilities: { elicitation: {} } })
    const call = (mark: string) =>
      session.open('tools/call', { name: 'asks', arguments: { mark, ask: true } }, { id: mark })
    const [asking, cancelled] = [await call('asking'), await call('cancelled')]
    const { id } = await nextMessage(asking)
    await nextMessage(cancelled)
    expect([countOf('asks', 'running'), countOf('asks', 'waiting')]).to.deep.equal([0, 0])
    const first = session.request('tools/call', { name: 'asks', arguments: { mark: 'first' } })
    await eventually('it runs', () => began.length === 1)
    const second = session.request('tools/call', { name: 'asks', arguments: { mark: 'second' } })
    await waitingAre('asks', 1)
    await session.send({ id, result: { action: 'accept', content: {} } })
    await waitingAre('asks', 2)
    // A cancelled handler that goes on needs a slot, too.
    await session.send({ method: 'notifications/cancelled', params: { requestId: 'cancelled' } })
    await waitingAre('asks', 3)
    for (const [index, mark] of ['first', 'asking', 'cancelled', 'second'].entries()) {
      await eventually('the next runs', () => began.length === index + 1)
      expect([began.at(-1), countOf('asks', 'running')]).to.deep.equal([mark, 1])
      gates.get(mark)?.open()
    }
    expect([textOf(await first), textOf(await second)]).to.deep.equal(['ran first', 'ran second'])
  })

  /** A tool that asks and then waits at its gate; `background`: it waits at its gate while it asks. */
  function createAsking(background: boolean) {
    const running: string[] = []
    const gates = new Map<string, Gate>()
    const tool = defineTool({
      name: 'asks',
      concurrency: 1,
      input: { type: 'object', properties: { mark: { type: 'string' }, ask: { type: 'boolean' } } } as const,
      async handler({ mark = '', ask = false }, { elicit }) {
        const gate = createGate()
        gates.set(mark, gate)
        const answer = ask && elicit({ message: '?', requestedSchema: { type: 'object', properties: {} } })
        if (!background) await answer
        running.push(mark)
        await Promise.race([gate.opened, background && answer].filter(Boolean))
        running.splice(running.indexOf(mark), 1)
        return `ran ${mark}`
      },
    })
    return { tool: tool as ToolDefinition, running, open: (mark: string) => gates.get(mark)?.open() }
  }
  const capabilities = { elicitation: {} }
  const accepted = { action: 'accept', content: {} }

  it('return in turn with the calls of other callers', async () => {
    const { tool, running, open } = createAsking(false)
    const { url } = await serve([{ tool }])
    const greedy = await openSession(url, { capabilities, localAddress: '127.0.0.2' })
    const modest = await openSession(url, { capabilities, localAddress: '127.0.0.3' })
    const ids: unknown[] = []
    for (let mark = 0; mark < 4; mark++) {
      const stream = await greedy.call('asks', { mark: `greedy ${mark}`, ask: true })
      ids.push((await nextMessage(stream)).id)
    }
    for (const id of ids) await greedy.send({ id, result: accepted })
    await eventually('the first has the slot', () => running.length === 1)
    await waitingAre('asks', 3)
    const answers = [0, 1].map(mark =>
      modest.request('tools/call', { name: 'asks', arguments: { mark: `modest ${mark}` } }),
    )
    await waitingAre('asks', 5)
    const order: unknown[] = []
    for (let ended = 0; ended < 6; ended++) {
      await eventually('one runs', () => running.length === 1 && !order.includes(running[0]))
      order.push(running[0])
      open(String(running[0]))
    }
    await Promise.all(answers)
    expect(order.map(mark => String(mark).split(' ')[0])).to.deep.equal([
      ...['greedy', 'greedy', 'modest', 'greedy', 'modest', 'greedy'],
    ])
  })

  it('are limited per caller: further calls of the caller are queued, calls of others run', async () => {
    const { tool, running, open } = createAsking(true)
    const { url } = await serve([{ tool }])
    const greedy = await openSession(url, { capabilities, localAddress: '127.0.0.2' })
    const modest = await openSession(url, { capabilities, localAddress: '127.0.0.3' })
    const calls = []
    for (let mark = 0; mark < MAX_PAUSED_PER_SLOT_AND_OWNER; mark++) {
      const stream = await greedy.call('asks', { mark: `greedy ${mark}`, ask: true })
      calls.push({ stream, id: (await nextMessage(stream)).id })
    }
    const queued = Array.from({ length: MAX_WAITING_CALLS_PER_OWNER }, (_, mark) =>
      modern(url, 'asks', `queued ${mark}`, '127.0.0.2'),
    )
    await waitingAre('asks', MAX_WAITING_CALLS_PER_OWNER)
    expect([running.length, countOf('asks', 'running')]).to.deep.equal([MAX_PAUSED_PER_SLOT_AND_OWNER, 0])
    const refused = await modern(url, 'asks', 'refused', '127.0.0.2')
    expect(refused.message.error.data.reason).to.equal('busy')
    const other = modest.request('tools/call', { name: 'asks', arguments: { mark: 'modest' } })
    await eventually('the call of another caller runs', () => running.includes('modest'))
    open('modest')
    expect(textOf(await other)).to.equal('ran modest')
    const ran: string[] = []
    // One handler ends without a response to its question, the others with one.
    open('greedy 0')
    for (const { id } of calls.slice(1)) await greedy.send({ id, result: accepted })
    for (let ended = 0; ended < queued.length; ended++) {
      const isNew = (mark: string) => mark.startsWith('queued') && !ran.includes(mark)
      await eventually('a queued call runs', () => running.some(isNew))
      const found = running.filter(isNew)
      expect(found).to.have.lengthOf(1)
      ran.push(...found)
      for (const mark of found) open(mark)
    }
    for (const [mark, answer] of queued.entries()) expect(textOf(await answer)).to.equal(`ran queued ${mark}`)
    expect([running.length, countOf('asks', 'running'), countOf('asks', 'waiting')]).to.deep.equal([0, 0, 0])
  })

  it('are limited per tool', async () => {
    const { tool, running, open } = createAsking(true)
    const { url } = await serve([{ tool }])
    const streams: StreamExchange[] = []
    for (let mark = 0; mark < MAX_PAUSED_PER_SLOT; ) {
      const owner = mark / MAX_PAUSED_PER_SLOT_AND_OWNER
      const session = await openSession(url, { capabilities, localAddress: `127.0.0.${2 + owner}` })
      for (const next = mark + MAX_PAUSED_PER_SLOT_AND_OWNER; mark < next; mark++) {
        const stream = await session.call('asks', { mark: `${mark}`, ask: true })
        await nextMessage(stream)
        streams.push(stream)
      }
    }
    const late = modern(url, 'asks', 'late', '127.0.0.100')
    await waitingAre('asks', 1)
    open('0')
    await eventually('the queued call runs', () => running.includes('late'))
    open('late')
    expect(textOf(await late)).to.equal('ran late')
    for (let mark = 1; mark < MAX_PAUSED_PER_SLOT; mark++) open(`${mark}`)
    await eventually('all handlers have ended', () => running.length === 0)
    for (const stream of streams) await readRest(stream)
  })
})

describe('tools.limits', () => {
  after(stopHosts)

  it('apply to matching tool names; the stricter of tool and operator limit wins', async () => {
    const tools = [
      createHeld('heavy_own', { concurrency: 1, timeout: '80ms' }),
      createHeld('heavy_wide', { concurrency: 9, timeout: '1h' }),
      createHeld('heavy_bare', {}),
      createHeld('light', {}),
    ]
    const limits = {
      'heavy_*': { concurrency: 2, timeout: '1m' },
      '*_wide': { concurrency: 3 },
      '*_bare': { timeout: '90ms' },
    }
    const { url } = await serve(tools, { tools: { limits, callTimeout: '30s' } })
    const running: Record<string, number> = {}
    const opened: Promise<StreamExchange>[] = []
    for (const { tool } of tools.slice(1)) {
      for (let call = 0; call < 4; call++) opened.push(openModern(url, tool.name, call))
    }
    const wide = tools[1] as (typeof tools)[number]
    await waitingAre('heavy_wide', 2)
    await eventually('all of the light one run', () => tools[3]?.runs.length === 4)
    for (const { tool, runs } of tools) running[tool.name] = runs.length
    expect(running).to.deep.include({ heavy_own: 0, heavy_wide: 2, light: 4 })
    const brief = await Promise.all([modern(url, 'heavy_own', 0), modern(url, 'heavy_bare', 0)])
    expect(textOf(brief[0])).to.include('stopped after 80 ms')
    expect(textOf(brief[1])).to.include('90 ms')
    expect(wide.runs.length).to.equal(2)
    for (const { runs } of tools) for (const run of [...runs]) run.gate.open()
    await eventually('the others follow', () => wide.ran.length === 4)
    for (const run of [...wide.runs]) run.gate.open()
    await Promise.all(opened)
  })

  it('log a warning with a suggestion if no tool matches', async () => {
    const { log } = await serve([createHeld('heavy', {})], {
      tools: { limits: { 'haevy*': { concurrency: 1 }, heavy: { timeout: '1s' } } },
    })
    const lines = log.filter(({ message }) => message?.includes(`tools.limits['haevy*']`))
    expect(lines.map(({ level }) => level)).to.deep.equal(['warn'])
    expect(lines[0]?.message).to.match(/"heavy"/)
  })

  it('log no warning for a tool of a toolset without a route, and for a tool that a session adds', async () => {
    const tools = { limits: { unserved: { concurrency: 1 }, heavy: { timeout: '1s' } } } as const
    const unserved = defineTool({ name: 'unserved', handler: () => 'done' })
    const heavy = [createHeld('heavy', {}).tool]
    const routes = { '/': { toolsets: 'all' } }
    const configs: TestConfig[] = [
      { toolsets: { all: heavy, spare: [unserved] }, routes, tools },
      { toolsets: { all: heavy }, routes, tools, configureSession: (_request, session) => void session.add(unserved) },
    ]
    for (const config of configs) {
      const { log } = await startHost(config)
      expect(log.filter(({ message }) => message?.includes('match no tool'))).to.deep.equal([])
    }
  })

  it('reject empty and non-integer limits', async () => {
    const wrong = [{}, { concurrency: 0 }, { concurrency: 1.5 }, { timeout: 'soon' }, { isolated: true }]
    for (const limit of wrong) {
      const started = serve([createHeld('heavy', {})], { tools: { limits: { heavy: limit as object } } })
      const error: unknown = await started.then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      expect(String(error)).to.include('tools.limits.heavy')
    }
  })
})
