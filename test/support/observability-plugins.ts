// Switches on all observability plugins (access-log, audit, metrics, tracing, log) in the hosts of other tests. If OBSERVABILITY_FOLDER names
// a folder, it receives their output per host, and a list of the secrets that must not appear in it. For test/slow/secrets-in-logs.slow.ts.
import { appendFileSync, mkdirSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-node'
import { definePlugin } from '../../core/internal.ts'
import type { LogLine, TestConfig } from './start-host.ts'

/** Minimum length: shorter texts can occur by chance. */
const MIN_LENGTH = 10
/** Maximum number of recorded secrets per host. */
const MAX_SECRETS = 5_000

export interface Eyes {
  readonly config: TestConfig
  /** Writes the output that is not in files yet. */
  close(url: string, log: readonly LogLine[]): Promise<void>
}

type Note = (kind: string, text: unknown) => void

/** Calls `note` for each text in a JSON value. */
function noteTexts(note: Note, kind: string, value: unknown, depth = 0): void {
  if (typeof value === 'string') note(kind, value)
  if (typeof value !== 'object' || value === null || depth > 5) return
  for (const part of Object.values(value).slice(0, 50)) noteTexts(note, kind, part, depth + 1)
}

/** The credentials of a request. */
function noteHeaders(note: Note, headers: IncomingHttpHeaders) {
  const [, credentials] = /^\S+ +(\S.*)$/.exec(headers.authorization ?? '') ?? []
  note('token', credentials)
  note('session id', headers['mcp-session-id'])
  note('cookie', headers.cookie)
}

/** Records request credentials before any other middleware. */
const witness = (note: Note) =>
  definePlugin<Record<never, never>>({
    setup(host) {
      host.use(async (ctx, next) => {
        noteHeaders(note, ctx.req.headers)
        await next()
        note('session id', ctx.res.getHeader('mcp-session-id'))
      })
      host.onCall((call, next) => {
        const { arguments: given, requestState, inputResponses } = call.params
        noteTexts(note, 'argument', given)
        noteTexts(note, 'argument', inputResponses)
        note('requestState', requestState)
        // The client chooses the request id, and spans contain it.
        note('request id', call.id)
        note('session id', call.offer.sessionId)
        for (const name of ['email', 'phone_number']) note(name, call.user?.claims[name])
        return next()
      })
    },
  })()

let hosts = 0

/** Writes spans of this process to a file. */
async function writeSpans(root: string) {
  const { BatchSpanProcessor, NodeTracerProvider } = await import('@opentelemetry/sdk-trace-node')
  const file = join(root, `spans-${process.pid}.jsonl`)
  const exporter = {
    export(spans: readonly ReadableSpan[], done: (result: { code: number }) => void) {
      for (const { name, attributes, events, status, links } of spans) {
        appendFileSync(file, `${JSON.stringify({ name, attributes, events, status, links })}\n`)
      }
      done({ code: 0 })
    },
    shutdown: async () => undefined,
  }
  const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] })
  provider.register()
  return provider
}

let provider: ReturnType<typeof writeSpans> | undefined

/** Adds all observability plugins to a config, if OBSERVABILITY_FOLDER is set. */
export async function withEyes(config: TestConfig): Promise<Eyes | undefined> {
  const root = process.env['OBSERVABILITY_FOLDER']
  if (root === undefined) return undefined
  provider ??= writeSpans(root)
  await provider
  const folder = join(root, `${process.pid}-${++hosts}`)
  mkdirSync(folder, { recursive: true })
  const noted = new Set<string>()
  const note: Note = (kind, text) => {
    if (typeof text !== 'string' || text.length < MIN_LENGTH || noted.size >= MAX_SECRETS) return
    const known = `${kind} ${text}`
    if (noted.has(known)) return
    noted.add(known)
    appendFileSync(join(folder, 'secrets.jsonl'), `${JSON.stringify({ kind, text })}\n`)
  }
  const eyes = {
    'access-log': { file: join(folder, 'access.log'), slow: '1ms' },
    audit: { file: join(folder, 'audit.log') },
    metrics: { path: '/metrics-of-eyes', token: 'the-token-of-the-one-who-looks' },
    tracing: {},
    witness: witness(note),
  }
  return {
    config: { ...config, plugins: { ...eyes, ...(config.plugins ?? { 'transport-streamable': {} }) } } as TestConfig,
    async close(url, log) {
      await (await provider)?.forceFlush()
      const headers = { Authorization: 'Bearer the-token-of-the-one-who-looks' }
      const page = await fetch(`${url}/metrics-of-eyes`, { headers }).catch(() => undefined)
      if (page?.ok) appendFileSync(join(folder, 'metrics.txt'), await page.text())
      appendFileSync(join(folder, 'host.log'), log.map(line => `${JSON.stringify(line)}\n`).join(''))
    },
  }
}
