// What an idle session costs in memory: many are opened over HTTP in one process of ours, and then nothing happens.
import { Agent, request } from 'node:http'
import { ours } from '../contestants.ts'
import { judge } from '../judge.ts'
import { type Measure, type MeasureResult, notMeasured } from '../measure.ts'
import { CAN_READ_COST, readRss } from '../process-cost.ts'
import { type RunningServer, startServer } from '../processes.ts'
import { callEcho } from '../requests.ts'

const CONNECTIONS = 32
/** kB a session, and MB for 100,000 of them with the process itself. */
const LIMITS = { session: 2, process: 350 }
/** Opened before anything is read: the process grows to its working size with them. */
const FIRST = 2_000

const body = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1.0.0' } },
})

function open(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
    const req = request(url, { method: 'POST', agent, headers }, res => {
      res.resume().once('end', () => {
        if (res.headers['mcp-session-id']) resolve()
        else reject(new Error(`no session was opened: ${res.statusCode}`))
      })
    })
    req.once('error', reject).end(body)
  })
}

/** Opens `count` sessions, a fixed number at a time; returns how many a second each tenth of them took. */
async function openMany(url: string, count: number): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  const rates: number[] = []
  for (let part = 0; part < 10; part++) {
    let left = count / 10
    const began = performance.now()
    const worker = async () => {
      while (left-- > 0) await open(url, agent)
    }
    await Promise.all(Array.from({ length: CONNECTIONS }, worker))
    rates.push(Math.round(count / 10 / ((performance.now() - began) / 1000)))
  }
  agent.destroy()
  return rates
}

async function measureSessions(server: RunningServer, count: number): Promise<MeasureResult> {
  await openMany(server.url, FIRST)
  const before = readRss(server.pid)
  const rates = await openMany(server.url, count - FIRST)
  const after = readRss(server.pid)
  const each = [(after - before) / (count - FIRST) / 1024]
  const all = [after / 1024 / 1024]
  return {
    figures: [
      { what: 'resident for each', unit: 'kB', values: each },
      { what: `resident with ${count.toLocaleString('en')} of them`, unit: 'MB', values: all },
      { what: 'opened a second, each tenth of them', unit: '/s', values: rates },
    ],
    targets: [
      judge(`an idle session <= ${LIMITS.session} kB`, each, '<=', LIMITS.session),
      judge(`${count.toLocaleString('en')} in one process <= ${LIMITS.process} MB`, all, '<=', LIMITS.process),
    ],
    notes: [],
  }
}

export const measure: Measure = {
  name: 'idle sessions',
  quick: false,
  async run({ sessions, scratch, signal }) {
    if (!CAN_READ_COST) return notMeasured('this system does not tell what a process uses')
    if (sessions < 5 * FIRST) return notMeasured(`--sessions ${sessions} are too few to say anything`)
    const contestant = ours(100, callEcho, { sessions: { maxIdle: sessions, maxPerOwner: sessions } })
    const server = await startServer(contestant.command(scratch), signal)
    try {
      return await measureSessions(server, sessions)
    } finally {
      await server.stop()
    }
  },
}
