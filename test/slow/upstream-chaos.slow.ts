// Tests 100 clients while upstream servers are killed, hang, are slow, lie and change their lists, and 60 clients of three nodes
// while servers and nodes are killed. `SEED=7` repeats the choices; `CHAOS_SECONDS=60` sets the time of the first run.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { createEraClients, type EraClient } from '../cluster/support/both-eras.ts'
import { type NodeProcess, startNode } from '../cluster/support/node-process.ts'
import { bodyOf, serve, stopServers } from '../remote/support/servers.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { needsRedis, startRedis, stopRedis } from '../support/redis-server.ts'
import { modern } from '../support/rpc.ts'
import { createSeededRandom } from '../support/seeded-random.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const CLIENTS = 100
const SECONDS = Number(process.env['CHAOS_SECONDS'] ?? 9)
/** Times with and without chaos alternate. */
const ROUNDS = Math.max(3, Math.round(SECONDS / 10))
const WARM_UP_SECONDS = 2
const CALM_SECONDS = 3
/** Seconds after each change during which durations are not measured: calls of the time before are still running. */
const CHANGE_SECONDS = 2
/** Longest pause of a client between two calls, milliseconds. */
const MAX_PAUSE = 1_000
const SEED = Number(process.env['SEED'] ?? 20_261_127)
/** Bytes of the heap at the end, above those after the first round. */
const MAX_GROWTH = 16_000_000
const NODE_CLIENTS = 60
/** Without and with chaos. */
const NODE_SECONDS = { calm: 2, chaos: 15 }
/** Milliseconds. */
const KILL_SERVER_EVERY = 1_000
const KILL_NODE_EVERY = 5_000
/** Milliseconds after which a call counts as hung: six times the call timeout. */
const HUNG = 60_000
const PROGRAM = join(import.meta.dirname, '../plugins/upstream/support/dying-server.mjs')
const KINDS = ['killed', 'hung', 'slow', 'lying', 'changing'] as const
type Kind = (typeof KINDS)[number]

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')
const heap = () => {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

/** Counts the executions of each call, by its tag. */
const executed = new Map<string, number>()
const note = (tag: string) => void executed.set(tag, (executed.get(tag) ?? 0) + 1)
const random = createSeededRandom(SEED)

type Phase = 'calm' | 'chaos'
type Times = Record<Phase, number[]>

/** Counts a call that takes longer than `HUNG` in `counts`. */
async function within<Value>(work: Promise<Value>, counts: { hung: number }): Promise<Value | undefined> {
  const stop = new AbortController()
  const late = wait(HUNG, undefined, { signal: stop.signal }).then(() => void counts.hung++)
  const end = await Promise.race([work, late.catch(() => undefined)])
  stop.abort()
  return end as Value | undefined
}

function describeTimes(times: Times): string {
  const describe = (phase: Phase) => {
    const sorted = times[phase].toSorted((one, other) => one - other)
    const part = (share: number) => Math.round(sorted[Math.floor(sorted.length * share)] ?? Number.NaN)
    return `${phase} p50 ${part(0.5)} ms, p99 ${part(0.99)} ms`
  }
  return `own tools: ${describe('calm')}; ${describe('chaos')}`
}

const inputSchema = { type: 'object' }
let phase: Phase = 'calm'
let lists = 0
const toolsOf = (kind: Kind) =>
  kind === 'changing' && phase === 'chaos'
    ? [
        { name: 'do', inputSchema },
        { name: `new${++lists}`, inputSchema },
      ]
    : [{ name: 'do', inputSchema }]

/** Texts that are no valid response to the request `id`. */
const lies = (id: unknown) => [
  '<html>',
  '{"jsonrpc":"2.0"',
  JSON.stringify({ jsonrpc: '2.0', id: Number(id) + 1, result: { content: [] } }),
  JSON.stringify({ jsonrpc: '1.0', id, result: [] }),
  JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'x'.repeat(200_000) }] } }),
]

const startServer = (kind: Kind): Promise<{ readonly origin: string; readonly server: Server }> =>
  serve(async (request, response) => {
    const json = (text: string, status = 200) =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(text)
    const { id, method, params } = JSON.parse((await bodyOf(request)) || '{}')
    const answer = (result: object) => json(JSON.stringify({ jsonrpc: '2.0', id, result }))
    if (method === 'server/discover') return answer({ supportedVersions: ['2026-07-28'], capabilities: { tools: {} } })
    if (method === 'tools/list') return answer({ tools: toolsOf(kind) })
    if (method !== 'tools/call') return answer({})
    const { tag } = params.arguments
    note(tag)
    if (phase === 'calm') return answer({ content: [{ type: 'text', text: tag }] })
    if (kind === 'hung') return
    if (kind === 'lying' && random.below(2) === 0)
      return json(lies(id)[random.below(5)] ?? '', random.below(4) ? 200 : 500)
    if (kind === 'slow') await wait(random.below(300))
    return answer({ content: [{ type: 'text', text: tag }] })
  })

describe('chaos: 100 clients of upstream servers', function () {
  this.timeout(300_000 + 2_000 * SECONDS)
  const folder = mkdtempSync(join(tmpdir(), 'upstream-chaos-'))
  const file = join(folder, 'calls')
  after(async () => {
    await stopHosts()
    await stopServers()
    rmSync(folder, { recursive: true, force: true })
  })

  it('neither hangs nor leaks, executes no call twice, and answers calls of own tools', async () => {
    const started = await Promise.all(KINDS.slice(1).map(async kind => [kind, await startServer(kind)] as const))
    const servers = {
      killed: { command: [process.execPath, PROGRAM, file], sessions: 'shared' as const },
      ...Object.fromEntries(started.map(([kind, { origin }]) => [kind, { url: `${origin}/mcp`, maxResult: '100kb' }])),
    }
    const { url, host } = await startHost({
      toolsets: { own: [defineTool({ name: 'own', handler: ({ tag }: { tag?: unknown }) => String(tag) })] },
      routes: { '/': { toolsets: ['own', ...KINDS] } },
      plugins: {
        'transport-streamable': {},
        upstream: { servers, callTimeout: '500ms', refresh: 50 },
      },
    })
    const counts = { own: 0, killed: 0, hung: 0, slow: 0, lying: 0, changing: 0, failed: 0 }
    const late = { hung: 0 }
    const times: Times = { calm: [], chaos: [] }
    let isOver = false
    /** Durations of the calls of own tools that begin and end in one phase. */
    let measured: number[] | undefined
    async function call(tag: string) {
      const kind = KINDS[random.below(KINDS.length + 1)]
      const fate = phase === 'calm' ? 1 : random.below(20)
      const began = performance.now()
      const before = measured
      const answer = modern(url, 'tools/call', { name: kind ? `${kind}_do` : 'own', arguments: { tag, fate } })
      const message = (await within(answer, late))?.message
      const { content, isError } = message?.result ?? { isError: true }
      if (!isError && content[0]?.text !== tag && kind !== 'lying')
        throw new Error(`a wrong result: ${JSON.stringify(message)}`)
      if (!kind && isError) throw new Error(`an own tool failed: ${JSON.stringify(message)}`)
      if (!kind && before === measured) measured?.push(performance.now() - began)
      if (isError) counts.failed++
      counts[kind ?? 'own']++
    }
    async function use(client: number) {
      for (let count = 0; !isOver; count++) {
        await call(`${client}-${count}`)
        await wait(random.below(MAX_PAUSE))
      }
    }
    const clients = Promise.all(Array.from({ length: CLIENTS }, (_, client) => use(client)))
    const pass = (seconds: number) => Promise.race([clients, wait(seconds * 1_000)])
    async function measure(next: Phase, seconds: number) {
      phase = next
      await pass(CHANGE_SECONDS)
      measured = times[next]
      await pass(seconds - CHANGE_SECONDS)
      measured = undefined
    }
    await pass(WARM_UP_SECONDS)
    let before = 0
    for (let round = 0; round < ROUNDS; round++) {
      await measure('calm', CALM_SECONDS)
      await measure('chaos', SECONDS / ROUNDS)
      if (round === 0) before = heap()
    }
    isOver = true
    await clients
    await host.close({ grace: 0 })
    const children = execFileSync('ps', ['-o', 'args=', '--ppid', String(process.pid)], { encoding: 'utf8' })
    expect(children).not.to.include(PROGRAM)
    for (const [kind, { server }] of started) {
      const count = () =>
        new Promise<number>((resolve, reject) =>
          server.getConnections((error, open) => (error ? reject(error) : resolve(open))),
        )
      await eventually(`no connection to the server "${kind}"`, async () => (await count()) === 0)
    }
    for (const tag of readFileSync(file, 'utf8').trim().split('\n')) note(tag)
    const twice = [...executed].filter(([, number]) => number > 1)
    const growth = heap() - before
    const shown = { ...counts, executed: executed.size, twice: twice.length, hangs: late.hung, lists, growth }
    console.log(`      seed ${SEED}: ${JSON.stringify(shown)}; ${describeTimes(times)}`)
    expect(twice).to.deep.equal([])
    expect(late.hung).to.equal(0)
    for (const kind of ['own', ...KINDS] as const) expect(counts[kind], kind).to.be.at.least(1)
    expect(growth).to.be.below(MAX_GROWTH)
  })
})

describe('chaos: 60 clients of three nodes with upstream servers', () => {
  const folder = mkdtempSync(join(tmpdir(), 'upstream-nodes-'))
  const file = join(folder, 'calls')
  const nodes: NodeProcess[] = []
  before(function () {
    needsRedis(this)
  })
  after(async () => {
    await Promise.all(nodes.map(node => node.kill()))
    await stopHosts()
    await stopRedis()
    rmSync(folder, { recursive: true, force: true })
  })

  /** The processes of the stdio servers, of one node or of all. */
  const serversOf = (port: number | string = '') =>
    execFileSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8' })
      .split('\n')
      .filter(line => line.includes(`${PROGRAM} ${file} ${port}`))
      .map(line => Number.parseInt(line, 10))

  it('neither hangs nor leaks, executes no call twice, and answers calls of own tools', async () => {
    executed.clear()
    const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } } as const
    const ask = defineTool({
      name: 'ask',
      async handler({ tag }: { tag?: unknown }, { elicit }) {
        const { content } = await elicit({ message: String(tag), requestedSchema })
        note(String(tag))
        return `${tag} ${content?.['name']}`
      },
    })
    const origin = await startHost({
      toolsets: { far: [ask] },
      routes: { '/': { toolsets: 'far' } },
      sessions: { maxPerOwner: 1_000 },
    })
    const redis = await startRedis()
    const env = {
      ...{ REDIS_URL: redis.url, MCP_HOST_SECRETS: 'a secret for tests that is long enough to be one' },
      ...{ UPSTREAM: `${origin.url}/`, PROGRAM, CALLS: file },
    }
    const start = (port: number) => startNode({ config: 'test/cluster/support/upstream.config.ts', port, env })
    const ports = [await freePort(), await freePort(), await freePort()] as const
    nodes.push(...(await Promise.all(ports.map(start))))
    const { modern, createLegacy } = createEraClients(
      nodes.map(({ url }) => `${url}/`),
      random,
    )

    const counts = { own: 0, answered: 0, failed: 0, mayBeDone: 0, lost: 0, hung: 0, serversKilled: 0, nodesKilled: 0 }
    const answered: Record<string, number> = { plain_do: 0, asking_ask: 0, far_ask: 0 }
    const certain: string[] = []
    const times: Times = { calm: [], chaos: [] }
    phase = 'calm'
    let isOver = false

    async function callOwn({ call }: EraClient, tag: string) {
      const began = performance.now()
      // This call has no effect, so the client repeats it.
      let end = await call('own', { tag, fate: 1 })
      for (; !end && !isOver; end = await call('own', { tag, fate: 1 })) await wait(20)
      if (!end) return
      expect(end).to.deep.equal({ text: tag, isError: false })
      times[phase].push(performance.now() - began)
      counts.own++
    }
    async function callUpstream({ call }: EraClient, tool: string, tag: string) {
      const end = await within(call(tool, { tag, fate: random.below(100) }), counts)
      if (!end) return void counts.lost++
      const { text, isError } = end
      if (!isError) {
        expect(text).to.equal(tool === 'plain_do' ? tag : `${tag} ${tag}`)
        certain.push(tag)
        counts.answered++
        answered[tool] = (answered[tool] ?? 0) + 1
      } else if (/may have been executed/.test(text)) counts.mayBeDone++
      else counts.failed++
    }
    const TOOLS = ['own', 'own', 'own', 'own', 'plain_do', 'plain_do', 'plain_do', 'far_ask', 'far_ask', 'asking_ask']
    async function use(caller: EraClient, client: number) {
      for (let call = 0; !isOver; call++) {
        const tool = TOOLS[random.below(TOOLS.length)] as string
        const tag = `${client}-${call}`
        if (tool === 'own') await within(callOwn(caller, tag), counts)
        else await callUpstream(caller, tool, tag)
        await wait(random.below(MAX_PAUSE))
      }
    }
    async function killServers() {
      for (; !isOver; await wait(KILL_SERVER_EVERY)) {
        const pids = serversOf()
        const pid = pids[random.below(Math.max(1, pids.length))]
        if (pid === undefined) continue
        try {
          process.kill(pid, 'SIGKILL')
          counts.serversKilled++
        } catch {
          // It ended with its call.
        }
      }
    }
    async function killNodes() {
      for (; !isOver; await wait(KILL_NODE_EVERY)) {
        const index = random.below(nodes.length)
        const port = ports[index] as number
        await nodes[index]?.kill()
        counts.nodesKilled++
        await eventually('no process of a killed node', () => serversOf(port).length === 0)
        nodes[index] = await start(port)
      }
    }

    // A session that is opened while its node is killed fails.
    const callers = await Promise.all(
      Array.from({ length: NODE_CLIENTS }, (_, client) => (client % 2 === 0 ? modern : createLegacy())),
    )
    const clients = Promise.all(callers.map(use))
    try {
      await Promise.race([clients, wait(NODE_SECONDS.calm * 1_000)])
      phase = 'chaos'
      const chaos = Promise.all([killServers(), killNodes()])
      await Promise.race([clients, chaos, wait(NODE_SECONDS.chaos * 1_000)])
      isOver = true
      await Promise.all([clients, chaos])
    } finally {
      isOver = true
    }
    await Promise.all(nodes.map(node => node.stop()))
    await eventually('no process of a server', () => serversOf().length === 0)

    for (const tag of readFileSync(file, 'utf8').trim().split('\n')) note(tag)
    const twice = [...executed].filter(([, times]) => times > 1)
    const shown = { ...counts, ...answered, executed: executed.size, twice: twice.length }
    console.log(`      seed ${SEED}: ${JSON.stringify(shown)}; ${describeTimes(times)}`)
    expect(twice).to.deep.equal([])
    expect(certain.filter(tag => !executed.has(tag))).to.deep.equal([])
    expect(counts.hung).to.equal(0)
    for (const least of [...Object.values(answered), counts.own, counts.nodesKilled]) expect(least).to.be.at.least(1)
  })
})
