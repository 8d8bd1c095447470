// Continuous load: each caller sends its next request soon after the last response. Some callers keep connections, some open a
// new one each time. Reports responses, responding nodes and failures.
import { Agent, request } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { modernRequest, parseEvents } from './rpc.ts'

const PATIENCE = 120_000

export interface LoadReport {
  readonly answered: number
  /** The reason for each request without the tool's text. */
  readonly failures: readonly string[]
  /** Number of responses by text. */
  readonly texts: ReadonlyMap<string, number>
}

export interface SteadyLoad {
  /** Resolves after this many more responses. */
  answers(more: number): Promise<void>
  stop(): Promise<LoadReport>
}

let lastId = 0

/** A call in a session of 2025-11-25. */
const sessionRequest = (session: string, tool: string) => ({
  headers: { 'Mcp-Session-Id': session, 'MCP-Protocol-Version': '2025-11-25' },
  body: JSON.stringify({ jsonrpc: '2.0', id: `load ${++lastId}`, method: 'tools/call', params: { name: tool } }),
})

/** The text of a tool's response; `agent` keeps connections, false opens a new one. */
export function callText(
  url: string,
  tool: string,
  agent: Agent | false = false,
  session?: string,
  patience: number = PATIENCE,
): Promise<string> {
  const { headers, body } =
    session === undefined ? modernRequest('tools/call', { name: tool }) : sessionRequest(session, tool)
  const base = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method: 'POST',
      agent,
      headers: { ...base, ...(headers as Record<string, string>) },
      signal: AbortSignal.timeout(patience),
    })
    sent.on('error', reject).on('response', response => {
      let text = ''
      response
        .setEncoding('utf8')
        .on('data', (chunk: string) => {
          text += chunk
        })
        .on('error', reject)
        .on('end', () => {
          if (response.statusCode !== 200) return reject(new Error(`status ${response.statusCode}`))
          const streamed = response.headers['content-type']?.startsWith('text/event-stream')
          const answer = streamed ? parseEvents(text).at(-1) : JSON.parse(text)
          if (answer?.result) resolve(answer.result.content[0].text)
          else reject(new Error(`answered with ${text}`))
        })
    })
    sent.end(body)
  })
}

const running = new Set<SteadyLoad>()

/** Stops the callers of a failed test: for `after`, before the server stops. */
export async function stopLoads(): Promise<void> {
  await Promise.all([...running].map(load => load.stop()))
}

export interface LoadSettings {
  /** Callers of each kind. Default 2. */
  readonly each?: number
  /** The session id of all callers; default: none, as in 2026-07-28. */
  readonly session?: string
  /** Milliseconds between a response and the next request of the caller. Default 10, which leaves CPU time on two cores. */
  readonly pause?: number
  /** Milliseconds after which a request without a response has failed. Default 120,000. */
  readonly patience?: number
}

/** Starts to call `tool`. */
export function startLoad(url: string, tool: string, settings: LoadSettings = {}): SteadyLoad {
  const { each = 2, session, pause = 10, patience } = settings
  const keeping = new Agent({ keepAlive: true })
  const failures: string[] = []
  const texts = new Map<string, number>()
  const waiting = new Set<{ at: number; resolve: () => void }>()
  let answered = 0
  let over = false

  function count(text: string) {
    answered++
    texts.set(text, (texts.get(text) ?? 0) + 1)
    for (const wait of waiting) {
      if (answered < wait.at) continue
      waiting.delete(wait)
      wait.resolve()
    }
  }

  async function callOnAndOn(agent: Agent | false) {
    while (!over) {
      await callText(url, tool, agent, session, patience).then(count, (error: Error) => failures.push(error.message))
      if (pause > 0) await setTimeout(pause)
    }
  }

  const callers = [...Array(each)].flatMap(() => [callOnAndOn(keeping), callOnAndOn(false)])
  const load: SteadyLoad = {
    answers: more => new Promise(resolve => waiting.add({ at: answered + more, resolve })),
    async stop() {
      over = true
      running.delete(load)
      await Promise.all(callers)
      keeping.destroy()
      return { answered, failures, texts }
    },
  }
  running.add(load)
  return load
}
