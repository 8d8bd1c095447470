// Callers that never pause: each sends its next request when the last was answered, some on connections that they keep,
// some on a new one each time. Says how many were answered, by whom, and how many failed.
import { Agent, request } from 'node:http'
import { modernRequest } from './rpc.ts'

/** A request that is not answered by then has failed, milliseconds. */
const PATIENCE = 8_000

export interface LoadReport {
  readonly answered: number
  /** Why, for each request that was not answered with the tool's text. */
  readonly failures: readonly string[]
  /** How often each text was answered. */
  readonly texts: ReadonlyMap<string, number>
}

export interface SteadyLoad {
  /** Resolves once as many more are answered. */
  answers(more: number): Promise<void>
  stop(): Promise<LoadReport>
}

/** The text that a tool answers with; `agent` keeps connections, false makes a new one. */
export function callText(url: string, tool: string, agent: Agent | false = false): Promise<string> {
  const { headers, body } = modernRequest('tools/call', { name: tool })
  const base = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method: 'POST',
      agent,
      headers: { ...base, ...(headers as Record<string, string>) },
      signal: AbortSignal.timeout(PATIENCE),
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
          if (response.statusCode === 200) resolve(JSON.parse(text).result.content[0].text)
          else reject(new Error(`status ${response.statusCode}`))
        })
    })
    sent.end(body)
  })
}

const running = new Set<SteadyLoad>()

/** Ends what a failed test left calling: for `after`, before its server is stopped. */
export async function stopLoads(): Promise<void> {
  await Promise.all([...running].map(load => load.stop()))
}

/** Begins to call `tool` with `each` callers of each kind. */
export function startLoad(url: string, tool: string, each = 2): SteadyLoad {
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
      await callText(url, tool, agent).then(count, (error: Error) => failures.push(error.message))
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
