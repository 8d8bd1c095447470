// Sends requests whose path is not normalized: fetch and URL would normalize it.
import { Agent, request } from 'node:http'
import { modernRequest } from './rpc.ts'

export interface PathAnswer {
  readonly status: number
  /** Empty for an event stream, which is not read. */
  readonly body: string
}

const agent = new Agent({ keepAlive: true, maxSockets: 4 })

/** Closes kept-alive connections: call it in `after`. */
export const closePaths = (): void => agent.destroy()

/** GET, or POST of a 2026-07-28 `tools/list`, with this exact path. */
export function requestPath(url: string, method: 'GET' | 'POST', path: string): Promise<PathAnswer> {
  const { hostname, port } = new URL(url)
  const { headers, body } = modernRequest('tools/list')
  const accept = method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream'
  const own = method === 'GET' ? {} : { ...headers, 'Content-Type': 'application/json' }
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, method, path, agent, headers: { ...own, Accept: accept } }, answer => {
      const status = answer.statusCode ?? 0
      if (answer.headers['content-type']?.startsWith('text/event-stream')) {
        sent.destroy()
        return resolve({ status, body: '' })
      }
      const chunks: Buffer[] = []
      answer.on('data', chunk => chunks.push(chunk))
      answer.on('end', () => resolve({ status, body: Buffer.concat(chunks).toString() }))
    })
    sent.on('error', reject)
    sent.end(method === 'POST' ? body : undefined)
  })
}

/** The tool names in a response to `tools/list`. */
export const readToolNames = ({ body }: PathAnswer): string[] =>
  ((JSON.parse(body).result?.tools ?? []) as Array<{ name: string }>).map(({ name }) => name)
