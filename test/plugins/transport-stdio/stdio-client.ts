// A host whose one transport is stdio, in this process, and a client by hand at the other end of its streams.
import { PassThrough } from 'node:stream'
import type { Config } from 'mcp-host'
import { createHost, type Host } from 'mcp-host/host'
import type { Logger } from 'mcp-host/plugin'
import {
  createStdioTransport,
  type ServedLine,
  type TransportStdioOptions,
} from '../../../plugins/transport-stdio/index.ts'
import { type Received, takeMessage } from '../../examples/client-at.ts'

export type { Received } from '../../examples/client-at.ts'

export const QUIET: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => QUIET }

const hosts: Host[] = []
/** For `after`. */
export const closeHosts = () => Promise.all(hosts.splice(0).map(host => host.close({ grace: 0 })))

export interface StdioClient<Line = ServedLine> {
  readonly input: PassThrough
  readonly output: PassThrough
  readonly line: Line
  /** What came and nobody asked for yet. */
  readonly seen: Received[]
  /** Every line, as it came. */
  readonly lines: string[]
  write(text: string): void
  say(message: object): void
  until(holds: (message: Received) => boolean): Promise<Received>
  request(id: number | string, method: string, params?: object): Promise<Received>
}

export interface StdioServing {
  readonly host: Host
  connect(path?: string, params?: Readonly<Record<string, string>>): StdioClient
}

/** Lines of a stream, as JSON; a line that is none fails the test that waits. */
function collect(output: PassThrough) {
  const seen: Received[] = []
  const lines: string[] = []
  let begun: string[] = []
  output.setEncoding('utf8').on('data', (chunk: string) => {
    const [first = '', ...others] = chunk.split('\n')
    begun.push(first)
    for (const other of others) {
      const line = begun.join('')
      begun = [other]
      lines.push(line)
      seen.push(JSON.parse(line) as Received)
    }
  })
  return { seen, lines }
}

export function clientOf<Line>(
  connect: (ends: { input: PassThrough; output: PassThrough }) => Line,
): StdioClient<Line> {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const line = connect({ input, output })
  const { seen, lines } = collect(output)
  const write = (text: string) => void input.write(text)
  const say = (message: object) => write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const until = (holds: (message: Received) => boolean) => takeMessage(seen, holds)
  const request = (id: number | string, method: string, params: object = {}) => {
    say({ id, method, params })
    return until(message => message.id === id && message.method === undefined)
  }
  return { input, output, line, seen, lines, write, say, until, request }
}

export async function serveStdio(
  config: Partial<Config>,
  options: TransportStdioOptions = {},
  log = QUIET,
): Promise<StdioServing> {
  const transport = createStdioTransport()
  const host = await createHost(
    {
      server: { name: 'stdio', version: '1' },
      toolsets: {},
      routes: {},
      secrets: ['a secret for tests, long enough to be one'],
      ...config,
      plugins: { 'transport-stdio': transport.plugin(options), ...config.plugins },
    },
    { log },
  )
  hosts.push(host)
  await host.start()
  return { host, connect: (path = '/', params = {}) => clientOf(ends => transport.connect(path, params, ends)) }
}

export const INITIALIZE = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'test', version: '1' },
}

/** Opens the session of a client. */
export async function initialize(
  client: Pick<StdioClient, 'request' | 'say'>,
  protocolVersion = '2025-11-25',
  capabilities: object = {},
) {
  const answer = await client.request(0, 'initialize', { ...INITIALIZE, protocolVersion, capabilities })
  client.say({ method: 'notifications/initialized' })
  return answer
}

const META = 'io.modelcontextprotocol'
/** The `_meta` of a request of 2026-07-28. */
export const meta = (more: object = {}, version = '2026-07-28') => ({
  _meta: {
    [`${META}/protocolVersion`]: version,
    [`${META}/clientInfo`]: { name: 'test', version: '1' },
    [`${META}/clientCapabilities`]: {},
    ...more,
  },
})

export const textOf = ({ result }: Received) => (result?.['content'] as Array<{ text: string }> | undefined)?.[0]?.text
