// Measures the memory of an idle session: opens many sessions over HTTP in one mcp-host process.
import { Agent, request } from 'node:http'
import { mcpHost } from '../contestants.ts'
import { type Measure, type MeasureResult, NO_PROC, skipMeasure } from '../measure.ts'
import { HAS_PROC, readRss } from '../process-stats.ts'
import { type RunningServer, startServer } from '../processes.ts'
import { callEcho } from '../requests.ts'
import { checkTarget } from '../targets.ts'

const CONNECTIONS = 32
/** kB per session, and MB of the process with 100,000 sessions. */
const LIMITS = { session: 2, process: 350 }
/** Opened before the first measurement, until the process has its working size. */
const WARM_UP_SESSIONS = 2_000

const body = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1.0.0' } },
})

function openSession(url: string, agent: Agent): Promise<void> {
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

/** Opens `count` sessions. Returns the sessions per second for each tenth of them. */
async function openSessions(url: string, count: number): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  const rates: number[] = []
  for (let part = 0; part < 10; part++) {
    let remaining = count / 10
    const startedAt = performance.now()
    const worker = async () => {
      while (remaining-- > 0) await openSession(url, agent)
    }
    await Promise.all(Array.from({ length: CONNECTIONS }, worker))
    rates.push(Math.round(count / 10 / ((performance.now() - startedAt) / 1000)))
  }
  agent.destroy()
  return rates
}

async function measureSessions(server: RunningServer, count: number): Promise<MeasureResult> {
  await openSessions(server.url, WARM_UP_SESSIONS)
  const before = readRss(server.pid)
  const rates = await openSessions(server.url, count - WARM_UP_SESSIONS)
  const after = readRss(server.pid)
  const perSession = [(after - before) / (count - WARM_UP_SESSIONS) / 1024]
  const total = [after / 1024 / 1024]
  return {
    figures: [
      { what: 'resident memory per session', unit: 'kB', values: perSession },
      { what: `resident memory with ${count.toLocaleString('en')} sessions`, unit: 'MB', values: total },
      { what: 'opened per second', unit: '/s', values: rates },
    ],
    targets: [
      checkTarget(`idle session <= ${LIMITS.session} kB`, perSession, '<=', LIMITS.session),
      checkTarget(
        `${count.toLocaleString('en')} sessions in one process <= ${LIMITS.process} MB`,
        total,
        '<=',
        LIMITS.process,
      ),
    ],
    notes: [],
  }
}

export const measure: Measure = {
  name: 'idle sessions',
  quick: false,
  async run({ sessions, scratch, signal }) {
    if (!HAS_PROC) return skipMeasure(NO_PROC)
    if (sessions < 5 * WARM_UP_SESSIONS) return skipMeasure(`--sessions must be at least ${5 * WARM_UP_SESSIONS}`)
    const contestant = mcpHost(100, callEcho, { sessions: { maxIdle: sessions, maxPerOwner: sessions } })
    const server = await startServer(contestant.command(scratch), signal)
    try {
      return await measureSessions(server, sessions)
    } finally {
      await server.stop()
    }
  },
}
