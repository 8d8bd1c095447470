// Tests that isolated tools in worker processes get the same context and return the same results as other tools.
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { MAX_REPLAYED_BYTES, MAX_REPLAYED_REQUESTS } from '../../core/mcp/client-limits.ts'
import type { TestHost } from '../../core/testing.ts'
import { REVISIONS } from '../../core/transport.ts'
import { CORE } from '../cli/run-cli.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { bundledFile } from '../support/compiled.ts'
import { eventually } from '../support/eventually.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { definePlugin, TOOLS, testHost } from './bundled.ts'
import { crowd } from './tools.ts'

const config = {
  server: { name: 'isolated', version: '1' },
  toolsets: { all: TOOLS },
  routes: { '/:tenant?': { toolsets: 'all' } },
  tools: { fetchTimeout: '3s' },
} as const

/** The time-out of the tools `obeys` and `ignores`, and how long their handlers may then go on, milliseconds. */
const TIMEOUT = 200
const STOP_TIME = 1_000

describe('Isolated tool call', () => {
  let host: TestHost
  before(async () => {
    host = await testHost(config)
  })
  after(() => host.close())

  it('runs in a worker process, with the definition in the host process', async () => {
    await using client = await host.client()
    const { structured } = await client.callTool('where')
    expect(structured).to.include({ isMainThread: false, importedByMain: false })
    expect(structured).to.have.property('pid').not.equal(process.pid)
    expect((await client.callTool('plain', { text: 'here' })).text).to.equal('here')
    expect((await client.callTool('second')).text).to.equal('second')
  })

  it('validates arguments before it reaches the process', async () => {
    await using client = await host.client()
    const { text, isError } = await client.callTool('echo', { text: 1 })
    expect(text).to.match(/^Invalid arguments for echo/)
    expect(isError).to.equal(true)
  })

  it('sends the result that the output schema parsed', async () => {
    await using client = await host.client()
    const { structured, text } = await client.callTool('leaks')
    expect([structured, text]).to.deep.equal([{ name: 'a' }, '{"name":"a"}'])
  })

  for (const revision of REVISIONS) {
    it(`receives the call context: ${revision}`, async () => {
      await using client = await host.client({ revision, route: '/acme', headers: { 'x-agent': 'me' } })
      const { structured } = await client.callTool('sees')
      expect(structured).to.deep.include({ path: '/:tenant?', params: { tenant: 'acme' }, agent: 'me', revision })
      expect((structured as { session?: string }).session).to.equal(client.sessionId)
    })

    it(`sends concurrent elicitation and roots requests: ${revision}`, async () => {
      const content = { city: 'Rome' }
      const answers = {
        elicit: () => ({ action: 'accept' as const, content }),
        roots: { roots: [{ uri: 'file:///one' }] },
      }
      await using client = await host.client({ revision, answers })
      const { structured, text } = await client.callTool('asks_two')
      expect(structured ?? text).to.deep.equal({ city: 'Rome', roots: 1, sure: 'accept' })
    })
  }

  it('returns ToolError text, HostError kind, and a generic error otherwise', async () => {
    await using client = await host.client()
    expect((await client.callTool('odd_failing')).text).to.equal('Take another text.')
    expect((await client.callTool('odd_hidden')).text).to.equal('odd_hidden failed')
    const refused = await client.callTool('odd_refused').catch(error => error)
    expect(refused).to.include({ code: -32000 })
    expect(refused.message).to.include('not for you')
    const logged = host.logged('error').map(line => line['err'] as Error)
    const hidden = logged.find(({ message }) => message === 'a secret of the tool')
    expect(hidden?.name).to.equal('TypeError')
    expect(hidden?.stack).to.match(/test\/isolated\/tools\.js:\d+:\d+/)
  })

  for (const [tool, why] of [
    ['odd_gives_function', /at\.do.*function/],
    ['odd_gives_instance', /url.*URL/],
  ] as const) {
    it(`reports values that cannot be transferred: ${tool}`, async () => {
      await using client = await host.client()
      expect((await client.callTool(tool)).text).to.equal(`${tool} failed`)
      const told = host.logged('error').map(line => (line['err'] as Error).message)
      expect(told.at(-1)).to.match(why)
    })
  }

  it('sends a Buffer in a result as base64', async () => {
    await using client = await host.client()
    expect((await client.callTool('odd_gives_buffer')).structured).to.deep.equal({ bytes: 'eA==' })
  })

  it('can announce resource updates but not add or remove definitions', async () => {
    await using client = await host.client()
    expect((await client.callTool('changes')).text).to.match(/`isolate`/)
    expect(host.changes()).to.deep.include({ changed: 'resource', uri: 'test://one' })
    expect((await client.callTool('echo', { text: 'still' })).text).to.equal('still')
  })

  it('explains that no upstream token is available', async () => {
    await using client = await host.client()
    const { text, isError } = await client.callTool('wants_token')
    expect(text).to.match(/^This route has no tokens of an identity provider/)
    expect(isError).to.equal(true)
  })

  it('applies tools.fetchTimeout to fetch', async () => {
    const server = createServer((req, res) => void (req.url === '/never' || res.end('fetched')))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    try {
      await using client = await host.client()
      expect((await client.callTool('fetches', { url })).text).to.equal('fetched')
      expect((await client.callTool('fetches', { url: `${url}/never` })).isError).to.equal(true)
      const names = host.logged('error').map(line => (line['err'] as Error).name)
      expect(names).to.include('TimeoutError')
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })

  it('aborts on timeout and ends a process that ignores the abort', async () => {
    const clock = createManualClock()
    await using host = await testHost(config, { clock })
    await using client = await host.client({ revision: '2025-11-25' })
    // The time limit includes the start of a process.
    expect((await client.callTool('echo', { text: 'loaded' })).text).to.equal('loaded')
    const isPending = (milliseconds: number) => clock.pending().includes(milliseconds)
    const begun = () => client.notifications.filter(({ method }) => method === 'notifications/message').length
    async function timeOut(tool: string) {
      const before = begun()
      const called = client.callTool(tool)
      await eventually('the handler runs', () => begun() > before)
      await clock.advance(TIMEOUT)
      return (await called).text
    }
    expect(await timeOut('obeys')).to.match(/^obeys.*200 ms/)
    await eventually('its handler has ended', () => !isPending(STOP_TIME))
    expect(await timeOut('ignores')).to.match(/^ignores: The call took too long/)
    await eventually('its handler was aborted', () => isPending(STOP_TIME))
    await clock.advance(STOP_TIME)
    const told = () => host.logged('warn').filter(({ over }) => over === 'stopped')
    await eventually('the process is ended', told, lines => lines.length > 0)
    expect(told().map(({ tool }) => tool)).to.deep.equal(['ignores'])
  })

  it('uses one time limit for all runs of a call', async () => {
    const clock = createManualClock()
    await using host = await testHost(config, { clock })
    const held: Array<() => void> = []
    const server = createServer((_, res) => void held.push(() => void res.end()))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    try {
      const elicit = () => ({ action: 'accept' as const, content: {} })
      await using client = await host.client({ revision: '2025-11-25', answers: { elicit } })
      const called = client.callTool('fetches_and_asks', { url })
      await eventually('the first run fetches', () => held.length === 1)
      await clock.advance(40_000)
      held[0]?.()
      await eventually('the second run fetches', () => held.length === 2)
      await clock.advance(19_000)
      expect(clock.pending()).to.include(1_000)
      await clock.advance(1_000)
      expect((await called).text).to.match(/^fetches_and_asks: .*stopped after 60000 ms/)
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })

  it('uses one CPU time limit for all runs of a call', async () => {
    const elicit = () => ({ action: 'accept' as const, content: { pin: 'wrong' } })
    await using client = await host.client({ revision: '2025-11-25', answers: { elicit } })
    const { text } = await client.callTool('guesses_slowly')
    expect(text).to.equal('guesses_slowly used more than 300 ms of CPU time and was terminated')
  })

  it('limits the questions of a call, and the bytes of the responses', async () => {
    const warnings: string[] = []
    const note = ({ name }: Error) => void warnings.push(name)
    process.on('warning', note)
    let asked = 0
    let pin = 'wrong'
    const elicit = () => ({ action: 'accept' as const, content: { pin: `${pin}${asked++}` } })
    await using client = await host.client({ revision: '2025-11-25', answers: { elicit } })
    expect((await client.callTool('guesses')).text).to.equal(
      'A call of an isolated tool can send at most 100 requests.',
    )
    expect(asked).to.equal(MAX_REPLAYED_REQUESTS)
    process.off('warning', note)
    // Each run removes its listeners from the signal of the call.
    expect(warnings).not.to.include('MaxListenersExceededWarning')
    asked = 0
    pin = 'x'.repeat(MAX_REPLAYED_BYTES / 2.5)
    const { text } = await client.callTool('guesses')
    expect(text).to.equal("The client's responses to this call are too large.")
    expect(asked).to.equal(3)
  })

  it('does not send a request of an earlier call to the next caller', async () => {
    const asked: string[] = []
    const elicit = ({ message }: { message: string }) => {
      asked.push(message)
      return { action: 'decline' as const }
    }
    await using client = await host.client({ answers: { elicit: elicit as never } })
    for (let round = 0; round < 3; round++) {
      expect((await client.callTool('leaves_question')).text).to.equal('left')
      expect((await client.callTool('pauses')).text).to.equal('paused')
    }
    expect(asked).to.deep.equal([])
  })

  it('does not show an error outside of every call to the next caller', async () => {
    await using client = await host.client()
    for (let round = 0; round < 3; round++) {
      expect((await client.callTool('leaves_error')).text).to.equal('left')
      expect((await client.callTool('pauses')).text).to.be.oneOf(['pauses failed', 'paused'])
    }
  })

  it('aborts when the client cancels', async () => {
    await using client = await host.client()
    const controller = new AbortController()
    const server = createServer((_, res) => void res.end(() => controller.abort()))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    try {
      const called = await client.callTool('stays', { url }, { signal: controller.signal }).catch(error => error)
      expect(called).to.be.an('error')
      const told = () => host.logged('warn').filter(({ over, tool }) => over === 'stopped' && tool === 'stays')
      await eventually('the process is ended', told, lines => lines.length === 1)
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })

  it('runs the calls of a full queue after the process of the running call was ended', async () => {
    await using host = await testHost({ ...config, tools: { limits: { stays: { isolate: { processes: 1 } } } } })
    await using client = await host.client()
    const controller = new AbortController()
    let hasBegun = false
    const server = createServer((_, res) => {
      hasBegun = true
      res.end()
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    try {
      client.callTool('stays', { url }, { signal: controller.signal }).catch(() => undefined)
      await eventually('the call runs', () => hasBegun)
      const calls = crowd.map(({ name }) => client.callTool(name).then(({ text }) => text, String))
      expect(await Promise.race(calls)).to.include('and 50 calls of one user or address wait')
      controller.abort()
      const texts = await Promise.all(calls)
      expect(texts.filter(text => text === 'one of many')).to.have.length.of.at.least(49)
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
})

describe('Isolated tool of a host', () => {
  after(removeFolders)

  it('may be every tool of a route with `search`, but for its own two', async () => {
    await using host = await testHost({
      ...config,
      routes: { '/': { toolsets: 'all', search: {} } },
      tools: { limits: { '*': { isolate: true } } },
    })
    await using client = await host.client()
    const found = await client.callTool('find_tools', { query: 'plain' })
    expect(JSON.stringify(found.structured)).to.include('plain')
    const { structured } = await client.callTool('call_tool', { name: 'where', arguments: {} })
    expect(structured).to.include({ isMainThread: false })
  })

  it('can be isolated by the operator; the stricter limit wins', async () => {
    const limits = { where: { isolate: { cpuTime: '100ms' } }, loop_loop: { isolate: { cpuTime: '50ms' } } } as const
    await using host = await testHost({ ...config, tools: { limits } })
    await using client = await host.client()
    expect((await client.callTool('loop_loop')).text).to.match(/^loop_loop.*50 ms.*CPU/)
  })

  it('receives members of plugins only if they are functions, which are created at their first use', async () => {
    const created: string[] = []
    const vault = definePlugin({
      options: { type: 'object', additionalProperties: false, properties: {} },
      context: { vault: undefined as object | undefined, tenant: async () => 'none', failing: async () => 'none' },
      setup(plugin) {
        plugin.context('vault', () => ({ password: created.push('vault') }))
        plugin.context('tenant', () => async () => `tenant ${created.push('tenant')}`)
        plugin.context('failing', () => {
          throw new Error('no tenant')
        })
      },
    })
    await using host = await testHost({ ...config, plugins: { vault: vault() } })
    await using client = await host.client()
    expect((await client.callTool('members', { name: 'absent' })).text).to.equal('"no value" undefined')
    expect(created).to.deep.equal([])
    expect((await client.callTool('members', { name: 'tenant' })).text).to.equal('"no value" tenant 1')
    expect((await client.callTool('members', { name: 'vault' })).text).to.equal('members failed')
    expect(created).to.deep.equal(['tenant'])
    const [refused] = host.logged('error').map(({ err }) => (err as Error).message)
    expect(refused).to.include('ctx.vault is a value')
  })

  it('starts processes at the first call and ends them with the host', async () => {
    const host = await testHost(config)
    const client = await host.client()
    const { structured } = await client.callTool('where')
    const { pid } = structured as { pid: number }
    const isRunning = () => existsSync(`/proc/${pid}`)
    expect(isRunning()).to.equal(true)
    const running = client.callTool('odd_never').catch(error => error)
    await host.close()
    await running
    await eventually('its process has ended', () => !isRunning())
  })

  it('can have an app, whose page is served', async () => {
    const folder = await makeFolder({
      'draw.js': `import { defineTool } from '${CORE}'
  import { defineApp } from '${pathToFileURL(bundledFile('plugins/apps/define-app.ts'))}'
  export const draw = defineTool({ name: 'draw', isolate: true, app: defineApp({ name: 'chart', html: '<!doctype html><p>A page</p>' }),
    handler: () => ({ n: 1 }) })`,
    })
    await using host = await testHost({ ...config, toolsets: { all: join(folder, 'draw.js') }, plugins: { apps: {} } })
    await using client = await host.client()
    expect(JSON.stringify(await client.readResource('ui://chart/app.html'))).to.include('<p>A page</p>')
    const { structured, text } = await client.callTool('draw')
    expect([structured, text]).to.deep.equal([{ n: 1 }, '{"n":1}'])
  })
})
