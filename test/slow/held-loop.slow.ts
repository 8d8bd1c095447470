// Tests readiness of worker processes with a blocked event loop.
import { expect } from 'chai'
import { crewConfig, startCrew } from '../cli/crew.ts'
import { stopAll } from '../cli/run-cli.ts'
import { removeFolders } from '../config/folder.ts'
import { eventually } from '../support/eventually.ts'
import { modernRequest } from '../support/rpc.ts'
import { postOpen, readWhole } from '../support/session-client.ts'
import { exchange } from '../support/stream-exchange.ts'

/** Computes in the process that it names, or in any. */
const HOLD = `defineTool({
  name: 'hold',
  input: { type: 'object', properties: { pid: { type: 'integer' } } },
  handler({ pid = process.pid }) {
    for (const end = performance.now() + 300; pid === process.pid && performance.now() < end; );
    return String(process.pid)
  },
})`
const TOOLS = "{ port: 0 }, tools: { stallWarning: '100ms', stallUnready: '800ms' }"
const config = crewConfig({ http: TOOLS, plugins: 'health: {}', tool: HOLD })

/** On a connection of its own: the primary gives them to the workers in turn. */
async function hold(url: string, pid?: number): Promise<number> {
  const { headers, body } = modernRequest('tools/call', { name: 'hold', arguments: pid === undefined ? {} : { pid } })
  const { message } = await readWhole(postOpen(url, body, headers))
  return Number(message.result.content[0].text)
}

async function isReady(url: string): Promise<{ readonly ready: boolean; readonly reason: string | undefined }> {
  const answer = await exchange(`${url}/readyz`, { method: 'GET' })
  const { reasons } = JSON.parse(await answer.text())
  return { ready: answer.status === 200, reason: reasons?.['event loop'] }
}

/** Until it was in this process, or each of these, so often. */
async function holdEach(url: string, pids: readonly number[], times: number): Promise<number> {
  const left = new Map(pids.map(pid => [pid, times]))
  let calls = 0
  for (; [...left.values()].some(count => count > 0); calls++) {
    const at = await hold(url, pids.length === 1 ? pids[0] : undefined)
    left.set(at, (left.get(at) ?? 0) - 1)
  }
  return calls
}

describe('readiness with a blocked event loop', function () {
  this.timeout(120_000)
  after(async () => {
    await stopAll()
    await removeFolders()
  })

  it('single worker: fails while blocked, recovers once and stays ready', async () => {
    const { url, workers } = await startCrew(1, config)
    expect((await isReady(url)).ready).to.equal(true)
    await holdEach(url, workers, 4)
    const { ready, reason } = await isReady(url)
    expect(ready).to.equal(false)
    expect(reason).to.match(/hold: \d\.\d.*10 s$/)
    const seen: boolean[] = []
    const look = async () => {
      seen.push((await isReady(url)).ready)
      return seen.at(-1)
    }
    await eventually('it is ready again', look)
    for (let more = 0; more < 100; more++) await look()
    const changes = seen.filter((one, index) => index > 0 && one !== seen[index - 1]).length
    expect(changes).to.be.at.most(1)
  })

  it('two workers: passes while one is blocked, fails while both are', async () => {
    const { url, workers } = await startCrew(2, config)
    const [one] = workers as [number, number]
    await holdEach(url, [one], 4)
    const asked = await Promise.all(Array.from({ length: 20 }, () => isReady(url)))
    expect(asked.filter(({ ready }) => !ready)).to.deep.equal([])
    await holdEach(url, workers, 4)
    const both = await Promise.all(Array.from({ length: 20 }, () => isReady(url)))
    expect(both.filter(({ ready }) => ready)).to.deep.equal([])
  })
})
