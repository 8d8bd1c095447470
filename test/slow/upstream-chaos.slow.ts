// Tests 100 clients while upstream servers are killed, hang, are slow, lie and change their lists. `SEED=7` repeats the choices.
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
import { bodyOf, serve, stopServers } from '../remote/support/servers.ts'
import { eventually } from '../support/eventually.ts'
import { modern } from '../support/rpc.ts'
import { createSeededRandom } from '../support/seeded-random.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const CLIENTS = 100
const SECONDS = 15
const SEED = Number(process.env['SEED'] ?? 20_261_127)
/** Bytes of the heap at the end, above those after a third of the time. */
const MAX_GROWTH = 32_000_000
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

const inputSchema = { type: 'object' }
let lists = 0
const toolsOf = (kind: Kind) =>
  kind === 'changing'
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
    if (kind === 'hung') return
    if (kind === 'lying' && random.below(2) === 0)
      return json(lies(id)[random.below(5)] ?? '', random.below(4) ? 200 : 500)
    if (kind === 'slow') await wait(random.below(300))
    return answer({ content: [{ type: 'text', text: tag }] })
  })

describe('chaos: 100 clients of upstream servers', function () {
  this.timeout(120_000)
  const folder = mkdtempSync(join(tmpdir(), 'upstream-chaos-'))
  const file = join(folder, 'calls')
  after(async () => {
    await stopHosts()
    await stopServers()
    rmSync(folder, { recursive: true, force: true })
  })

  it('neither hangs nor leaks, executes no call twice, and answers calls of own tools', async () => {
    const started = await Promise.all(KINDS.slice(1).map(async kind => [kind, await startServer(kind)] as const))
    const dying = join(import.meta.dirname, '../plugins/upstream/support/dying-server.mjs')
    const servers = {
      killed: { command: [process.execPath, dying, file], sessions: 'shared' as const },
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
    const counts: Record<string, number> = { own: 0, failed: 0 }
    let isOver = false
    async function use(client: number) {
      for (let call = 0; !isOver; call++) {
        const tag = `${client}-${call}`
        const kind = KINDS[random.below(KINDS.length + 1)]
        const args = { tag, fate: random.below(20) }
        const params = { name: kind ? `${kind}_do` : 'own', arguments: args }
        const { message } = await modern(url, 'tools/call', params)
        const { content, isError } = message.result ?? { isError: true }
        if (!isError && content[0]?.text !== tag && kind !== 'lying')
          throw new Error(`a wrong result: ${JSON.stringify(message)}`)
        if (!kind && isError) throw new Error(`an own tool failed: ${JSON.stringify(message)}`)
        if (isError) counts['failed'] = (counts['failed'] ?? 0) + 1
        counts[kind ?? 'own'] = (counts[kind ?? 'own'] ?? 0) + 1
      }
    }
    const clients = Promise.all(Array.from({ length: CLIENTS }, (_, client) => use(client)))
    await Promise.race([clients, wait((SECONDS * 1_000) / 3)])
    const before = heap()
    await Promise.race([clients, wait((SECONDS * 2_000) / 3)])
    isOver = true
    await clients
    await host.close({ grace: 0 })
    const children = execFileSync('ps', ['-o', 'args=', '--ppid', String(process.pid)], { encoding: 'utf8' })
    expect(children).not.to.include(dying)
    for (const [kind, { server }] of started) {
      const count = () =>
        new Promise<number>((resolve, reject) =>
          server.getConnections((error, open) => (error ? reject(error) : resolve(open))),
        )
      await eventually(`no connection to the server "${kind}"`, async () => (await count()) === 0)
    }
    for (const tag of readFileSync(file, 'utf8').trim().split('\n')) note(tag)
    const twice = [...executed].filter(([, times]) => times > 1)
    const growth = heap() - before
    console.log(
      `      seed ${SEED}: ${JSON.stringify({ ...counts, executed: executed.size, twice: twice.length, lists, growth })}`,
    )
    expect(twice).to.deep.equal([])
    for (const kind of ['own', ...KINDS]) expect(counts[kind], kind).to.be.at.least(1)
    expect(growth).to.be.below(MAX_GROWTH)
  })
})
