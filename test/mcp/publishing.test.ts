// Tests that a response waits until changes of its call are published, also if the change bus fails.
import { expect } from 'chai'
import { definePrompt, defineResource, defineTool, type RuntimeHost, ToolError } from '../../core/index.ts'
import { definePlugin } from '../../core/internal.ts'
import { MAX_LINES } from '../../core/kernel/log.ts'
import type { Change, ChangeBus } from '../../core/transport.ts'
import { createGate, type Gate } from '../support/gate.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { modern, type RpcMessage } from '../support/rpc.ts'
import { createTestLog, type StartOptions, startHost, stopHosts } from '../support/start-host.ts'

/** A bus that acknowledges when the test says so. */
function createSlowBus() {
  const published: Array<{ readonly change: Change; readonly gate: Gate<void> }> = []
  const heard = createGate<void>()
  const bus: ChangeBus = {
    publish(change) {
      const gate = createGate<void>()
      published.push({ change, gate })
      heard.open()
      return gate.opened
    },
    subscribe: () => () => undefined,
  }
  return { bus, published, heard }
}

const change = ({ host }: { host: RuntimeHost }) => host.resourceUpdated('page://one')
const tools = [
  defineTool({ name: 'at once', handler: (_args, ctx) => `${change(ctx)}` }),
  defineTool({ name: 'late', handler: async (_args, ctx) => `${await Promise.resolve().then(() => change(ctx))}` }),
  defineTool({
    name: 'throws',
    handler(_args, ctx) {
      change(ctx)
      throw new ToolError('thrown')
    },
  }),
  defineTool({
    name: 'rejects',
    async handler(_args, ctx) {
      change(ctx)
      throw new ToolError('rejected')
    },
  }),
  defineTool({
    name: 'is stopped',
    timeout: 20,
    handler(_args, ctx) {
      change(ctx)
      return new Promise(() => undefined)
    },
  }),
  defineTool({
    name: 'adds',
    handler(_args, { host }) {
      host.tools.add(defineTool({ name: 'added', handler: () => '' }))
      return host.tools.remove('added') ? 'removed' : ''
    },
  }),
]
const items = [
  ...tools,
  defineResource({ name: 'page', uri: 'page://one', handler: (_args, ctx) => `${change(ctx)}` }),
  definePrompt({ name: 'prompt', handler: (_args, ctx) => `${change(ctx)}` }),
]

async function startWith(bus: ChangeBus, options: StartOptions = {}) {
  const filled = definePlugin<Record<never, never>>({
    options: { type: 'object', additionalProperties: false, properties: {} },
    setup: host => host.provide('changeBus', bus),
  })
  const config = {
    toolsets: { all: items },
    routes: { '/': { toolsets: 'all' } },
    plugins: { 'transport-streamable': {}, slow: filled() },
  }
  return startHost(config, undefined, options)
}

describe('Response to a call that publishes changes', () => {
  afterEach(stopHosts)

  const calls = [
    ...tools.map(({ name }) => ['tools/call', { name, arguments: {} }] as const),
    ['resources/read', { uri: 'page://one' }] as const,
    ['prompts/get', { name: 'prompt' }] as const,
  ]
  for (const [method, params] of calls) {
    it(`waits for the change bus: ${method} of ${'name' in params ? params.name : params.uri}`, async () => {
      const { bus, published, heard } = createSlowBus()
      const { url } = await startWith(bus)
      let answered = false
      const answer = modern(url, method, params).then(got => {
        answered = true
        return got
      })
      await heard.opened
      // Whoever did not wait would have been answered before this other call is.
      await modern(url, 'tools/list')
      await modern(url, 'tools/list')
      expect(answered).to.equal(false)
      for (const { gate } of published) gate.open()
      const { message } = (await answer) as { message: RpcMessage }
      expect(message.result ?? message.error, JSON.stringify(message)).to.not.equal(undefined)
      expect(published.length).to.equal(params === calls[5]?.[1] ? 2 : 1)
    })
  }

  it('is sent if the bus rejects the change, which is logged within the limit of the log', async () => {
    const clock = createManualClock()
    const bus: ChangeBus = {
      publish: () => Promise.reject(new Error('no bus today')),
      subscribe: () => () => undefined,
    }
    const { lines: log, ...kept } = createTestLog()
    const { url } = await startWith(bus, { clock, log: Object.assign(kept, { level: 'info' }) })
    const count = 100
    const answers = await Promise.all(
      Array.from({ length: count }, () => modern(url, 'tools/call', { name: 'at once', arguments: {} })),
    )
    expect(answers.filter(({ message }) => message.result.isError !== true).length).to.equal(count)
    const lines = log.filter(({ code }) => code === 'MH1430')
    expect(lines.length).to.equal(MAX_LINES)
    expect(lines[0]).to.include({ reason: 'no bus today' }).and.not.have.property('err')
    await clock.advance(10_000)
    const suppressed = log.filter(({ code }) => code === 'MH1901')
    expect(suppressed.map(line => line['lines'])).to.deep.equal([count - MAX_LINES])
  })

  it('waits for changes of its own call only; `settled` waits for all', async () => {
    const { bus, published } = createSlowBus()
    const { host, url } = await startWith(bus)
    host.runtime.resourceUpdated('page://one')
    const { message } = await modern(url, 'ping-less/unknown')
    expect(message.error.code).to.equal(-32601)
    let settled = false
    const waiting = host.runtime.settled().then(() => {
      settled = true
    })
    await modern(url, 'tools/list')
    expect(settled).to.equal(false)
    published[0]?.gate.open()
    await waiting
  })
})
