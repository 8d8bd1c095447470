// The hosts whose work is counted: a plain one, and one with all observability and protection plugins. Each has a
// hundred tools.
import { generateKeyPairSync, sign } from 'node:crypto'
import { createHost } from '../../core/create-host.ts'
import { defineTool } from '../../core/index.ts'
import type { Logger } from '../../core/plugin.ts'
import { type Asker, callEcho, listTools, startAsking } from './counted-requests.ts'

const ISSUER = 'https://login.example'
const AUDIENCE = 'https://mcp.example'
const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

function signToken(): string {
  const now = Math.floor(Date.now() / 1000)
  const claims = { iss: ISSUER, aud: AUDIENCE, sub: 'guard', scope: 'mcp.tools', iat: now, exp: now + 3_600 }
  const head = `${encode({ alg: 'RS256', typ: 'at+jwt', kid: 'guard' })}.${encode(claims)}`
  return `${head}.${sign('sha256', Buffer.from(head), privateKey).toString('base64url')}`
}

const RULES = Object.fromEntries([
  ...Array.from({ length: 49 }, (_, index) => [`other-${index}-*`, 'tools']),
  ['echo*', 'tools'],
])

/** Bearer tokens, fifty rules, rate limits, and every way to see a call. */
const EVERYTHING = {
  'auth-jwt': {
    issuer: ISSUER,
    audience: AUDIENCE,
    keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'guard', alg: 'RS256', use: 'sig' }],
  },
  'tool-policy': { policies: { tools: { scope: 'mcp.tools' } }, rules: RULES },
  'rate-limit': { address: '1000000000/1h', user: '1000000000/1h' },
  'access-log': { file: '/dev/null' },
  metrics: { port: 0 },
  tracing: {},
}

const input = {
  type: 'object',
  properties: { message: { type: 'string' } },
  required: ['message'],
  additionalProperties: false,
} as const
const toolNamed = (name: string) => defineTool({ name, input, handler: ({ message }: { message: string }) => message })

const ignore = () => undefined
const log: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore, child: () => log }

/** The kinds of work that are counted: calls of 2026-07-28, in a session, and with everything on; and a list. */
export const WORKS = ['per request', 'session', 'list', 'everything'] as const
export type Work = (typeof WORKS)[number]

export interface Guarded {
  /** Does the work so many times, on each of the connections one after the other. */
  work(what: Work, times: number, connections?: number): Promise<string>
  close(): Promise<void>
}

async function startHost(plugins: object) {
  const tools = ['echo', ...Array.from({ length: 99 }, (_, index) => `tool-${index}`)].map(toolNamed)
  const config = {
    server: { name: 'guarded', version: '1' },
    http: { port: 0 },
    secrets: ['a secret for tests, long enough to be one'],
    toolsets: { all: tools },
    routes: { '/': { toolsets: 'all' } },
    plugins: { 'transport-streamable': {}, ...plugins },
  }
  const host = await createHost(config, { log })
  await host.listen()
  return { host, asker: startAsking(host.url) }
}

export async function startGuarded(): Promise<Guarded> {
  const [plain, protectedAndSeen] = [await startHost({}), await startHost(EVERYTHING)]
  const session = await plain.asker.openSession()
  const requests: Readonly<Record<Work, readonly [Asker, string]>> = {
    'per request': [plain.asker, callEcho()],
    session: [plain.asker, session],
    list: [plain.asker, listTools()],
    everything: [protectedAndSeen.asker, callEcho({ Authorization: `Bearer ${signToken()}` })],
  }
  return {
    work(what, times, connections) {
      const [asker, request] = requests[what]
      return asker.ask(request, times, connections)
    },
    async close() {
      for (const { asker, host } of [plain, protectedAndSeen]) {
        await asker.end()
        await host.close({ grace: 0 })
      }
    },
  }
}
