// Tests threads that do not respond to memory checks, and the V8 heap limit of threads.
import { join } from 'node:path'
import { expect } from 'chai'
import { systemClock } from '../../core/http/clock.ts'
import { heapLimit, keepLoopsInterruptible } from '../../core/isolated/memory-limits.ts'
import { ToolThread } from '../../core/isolated/tool-thread.ts'
import type { ToolDefinition } from '../../core/mcp/define.ts'
import type { IsolatedCall } from '../../core/mcp/isolation.ts'
import { eventually } from '../support/eventually.ts'
import { hoarders, oddities } from './tools.ts'

const MEGABYTE = 1_024 ** 2
const MEMORY = 96 * MEGABYTE
/** Questions are lost. */
const silent = { ask: () => undefined, owes: () => true }

/** A call that no client made: `ctx` has what crosses to the thread. */
function callOf(exported: string, tools: readonly ToolDefinition[], name: string, args: object): IsolatedCall {
  const index = tools.findIndex(tool => tool.name === name)
  const client = { info: undefined, capabilities: {}, revision: '2026-07-28' }
  const ctx = { route: { path: '/', params: {} }, headers: {}, client, meta: {}, signal: new AbortController().signal }
  const bounds = { memory: MEMORY, cpuTime: 60_000, threads: 1 }
  const origin = { name: exported, index }
  return { tool: tools[index], origin, bounds, args, ctx, headers: {} } as unknown as IsolatedCall
}

describe('Unresponsive worker thread', function () {
  this.timeout(60_000)
  let thread: ToolThread
  const ended: unknown[] = []
  before(keepLoopsInterruptible)
  beforeEach(async () => {
    ended.length = 0
    const file = join(import.meta.dirname, 'tools.ts')
    const tell = (what: unknown) => ended.push(what)
    thread = new ToolThread({ file, memory: MEMORY, fetchTimeout: 1_000, clock: systemClock, probe: silent, tell })
    await thread.ready
  })
  afterEach(async () => {
    thread.end()
    await thread.gone
  })

  /** What it comes to, looked at as a host looks. */
  async function outcomeOf(call: IsolatedCall): Promise<unknown> {
    let outcome: unknown
    thread.run(call).then(
      value => {
        outcome = value
      },
      error => {
        outcome = error.message
      },
    )
    const look = () => {
      thread.look(performance.now(), { size: process.memoryUsage.rss(), allowed: MEMORY })
      return outcome
    }
    return eventually('its call ends', look, Boolean, 30_000)
  }

  it('is terminated if the process grows by more than its memory limit', async () => {
    const outcome = await outcomeOf(callOf('hoarders', hoarders, 'hog_lists', {}))
    expect(outcome).to.match(/^hog_lists.*96 MB/)
    expect(ended).to.deep.equal([{ tool: 'hog_lists', over: 'memory', bound: MEMORY }])
  })

  it('continues if the process does not grow', async () => {
    expect(await outcomeOf(callOf('oddities', oddities as ToolDefinition[], 'odd_sleeps', { n: 700 }))).to.equal(
      'slept',
    )
    expect(ended).to.deep.equal([])
  })
})

describe('V8 heap limit of a thread', () => {
  for (const [thereIs, limit] of [
    [256, 384],
    [512, 384],
    [1_024, 640],
    [4_096, 2_176],
    [64_000, 3_200],
  ] as const) {
    it(`is ${limit} MB for 128 MB with ${thereIs} MB of system memory`, () => {
      expect(heapLimit(128 * MEGABYTE, true, thereIs * MEGABYTE)).to.equal(limit)
    })
  }

  it('equals the memory limit without memory monitoring', () => {
    expect(heapLimit(128 * MEGABYTE, false)).to.equal(128)
  })
})
