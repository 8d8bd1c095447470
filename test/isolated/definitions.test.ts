import { join } from 'node:path'
import { threadId } from 'node:worker_threads'
import { expect } from 'chai'
import { createHost } from '../../core/create-host.ts'
import { type Config, defineTool } from '../../core/index.ts'
import { createTestLog } from '../../core/testing/test-log.ts'
import { testHost, testTool } from '../../core/testing.ts'
import { oddities, where } from './tools.ts'

const TOOLS = join(import.meta.dirname, 'tools.ts')
const base = { server: { name: 'isolated', version: '1' }, routes: { '/': { toolsets: 'all' } } }
const inline = defineTool({ name: 'inline', isolate: true, handler: () => 'never' })
const ordinary = defineTool({ name: 'ordinary', handler: () => 'here' })

async function refusal(config: Config): Promise<string> {
  try {
    const host = await createHost(config, { log: createTestLog() })
    await host.close()
    return 'it started'
  } catch (error) {
    return (error as Error).message
  }
}

describe('Isolated tool definition', () => {
  it('must come from a module: an inline definition stops startup with advice', async () => {
    const message = await refusal({ ...base, toolsets: { all: inline } })
    expect(message).to.include('tool "inline"')
    expect(message).to.include('export it from a separate module, and use that file in a toolset')
  })

  it('must come from a module if isolated by the operator', async () => {
    const limits = { 'ord*': { isolate: true } } as const
    const message = await refusal({ ...base, toolsets: { all: ordinary }, tools: { limits } })
    expect(message).to.match(/"ordinary"/)
    expect(message).to.include('tools.limits')
  })

  it('cannot be added at run time', async () => {
    await using host = await testHost({ ...base, toolsets: { all: TOOLS } })
    expect(() => host.host.runtime.tools.add(inline)).to.throw('cannot be written in the config or added at run time')
  })

  it('cannot be added at run time or by a session if isolated by the operator, and the rule is named', async () => {
    await using host = await testHost({
      ...base,
      toolsets: { all: TOOLS },
      tools: { limits: { 'ord*': { isolate: true } } },
      configureSession: (_request, session) => session.add(ordinary),
    })
    const rule = /tools\.limits\['ord\*'\]\.isolate: "ordinary" cannot be isolated/
    expect(() => host.host.runtime.tools.add(ordinary)).to.throw(rule)
    await host.client().then(
      () => expect.fail('the session was opened'),
      () => undefined,
    )
    expect(host.logged('error').map(({ err }) => String((err as Error).message))).to.match(rule)
  })

  it('rejects invalid limits', async () => {
    const limits = (isolate: object) => ({
      ...base,
      toolsets: { all: TOOLS },
      tools: { limits: { plain: { isolate } } },
    })
    expect(await refusal(limits({ memory: '1mb' }))).to.include('less than 64mb')
    expect(await refusal(limits({ cpuTime: '0s' }))).to.include('is too short for any call')
    expect(await refusal(limits({ memry: '1mb' }))).to.include('memry')
    expect(await refusal(limits({ processes: 0 }))).to.include('processes')
  })

  it('runs in the same process with testTool, with transferable results required', async () => {
    const { structured } = await testTool(where)
    expect(structured).to.include({ isMainThread: threadId === 0, threadId, pid: process.pid })
    const odd = oddities.find(({ name }) => name === 'odd_gives_function')
    const { error } = await testTool(odd as never)
    expect((error as Error).message).to.include('could not be cloned')
  })

  it('requires the plugin isolate, which is on by default', async () => {
    const off = { toolsets: { all: TOOLS }, plugins: { isolate: false } } as const
    expect(await refusal({ ...base, ...off })).to.match(/has `isolate`, which requires a plugin: enable isolate/)
    const onRoute = { '/': { toolsets: 'all', plugins: { isolate: false } } } as const
    expect(await refusal({ ...base, ...off, plugins: {}, routes: onRoute })).to.include('enable isolate')
  })
})
