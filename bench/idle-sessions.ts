// What an idle session costs in memory: many are opened over HTTP in one process of ours, and then nothing happens.
import { Agent, request } from 'node:http'
import { ours } from './contestants.ts'
import { CAN_READ_COST, readRss } from './process-cost.ts'
import { startServer } from './processes.ts'
import { callEcho } from './requests.ts'

const CONNECTIONS = 32
/** Bytes a session, and bytes for 100,000 of them with the process itself. */
const LIMITS = { session: 4 * 1024, process: 600 * 1024 * 1024 }

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

/** Opens the sessions, prints what they cost, and returns the lines. */
export async function measureIdleSessions(count: number, scratch: string, signal: AbortSignal): Promise<string> {
  if (!CAN_READ_COST) return 'idle sessions: not measured, this system does not tell what a process uses'
  const contestant = ours(100, callEcho, { sessions: { maxIdle: count } })
  const server = await startServer(contestant.command(scratch), signal)
  try {
    await openMany(server.url, 2_000)
    const before = readRss(server.pid)
    const rates = await openMany(server.url, count - 2_000)
    const after = readRss(server.pid)
    const each = (after - before) / (count - 2_000)
    const met = (holds: boolean) => (holds ? 'met' : 'not met')
    return [
      `idle sessions, 100 tools: ${count.toLocaleString('en')} in one process`,
      `  ${(each / 1024).toFixed(2)} kB resident each (<= 4: ${met(each <= LIMITS.session)})`,
      `  ${Math.round(after / 1024 / 1024)} MB resident in all (< 600: ${met(after < LIMITS.process)})`,
      `  opened per second, by tenths: ${rates.join(' ')}`,
    ].join('\n')
  } finally {
    await server.stop()
  }
}
