// A host in a process of its own that tells what it still holds. Run with --expose-gc and an IPC channel: it listens,
// sends `{ url }`, answers each `measure` once its last session is over (or will not be), and ends after `close`.
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { createHost } from '../../core/create-host.ts'
import { definePlugin, defineResource, defineTool, type Logger, type Services } from '../../core/index.ts'
import type { ChangeFeed } from '../../core/transport.ts'

export interface Holding {
  /** Sessions that were opened so far, and those that are left. */
  readonly opened: number
  readonly sessions: number
  /** Who would be told of changes. */
  readonly subscribers: number
  /** Bytes, after garbage collection. */
  readonly heap: number
  /** Handles and timers by kind. */
  readonly resources: Readonly<Record<string, number>>
  /** Log lines of warnings and errors. */
  readonly complaints: readonly string[]
}

/** Milliseconds between two looks at whether the last session is over, and how many there are at most. */
const LOOK = 20
const LOOKS = 1_000
const IDLE_TIMEOUT = '400ms'
/** Milliseconds that it takes to find out who calls, and what they get. */
const ASKING_TIME = 10

let plugin: Pick<Services, 'sessions'> & { readonly changes: ChangeFeed }
let opened = 0
const complaints: string[] = []
const complain = (fields: object, message?: string) => void complaints.push(JSON.stringify({ message, ...fields }))
const ignore = () => undefined
/** Keeps nothing of what goes as it should. */
const log: Logger = { debug: ignore, info: ignore, warn: complain, error: complain, child: () => log }
const form = { type: 'object', properties: { name: { type: 'string' } } } as const

const soaked = [
  defineTool({
    name: 'talk',
    async handler(_args, { log: say }) {
      for (let index = 0; index < 10; index++) {
        say('info', { index, filler: 'x'.repeat(500) })
        await turn()
      }
      return 'done'
    },
  }),
  defineTool({
    name: 'ask',
    timeout: '200ms',
    handler: (_args, { elicit }) => elicit({ message: 'Who are you?', requestedSchema: form }),
  }),
  defineTool({
    name: 'wait',
    timeout: '300ms',
    handler: (_args, { signal }) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  }),
  defineResource({ name: 'page', uri: 'soak://page', handler: () => 'text' }),
]

const look = definePlugin<Record<never, never>>({
  options: { type: 'object', additionalProperties: false, properties: {} },
  setup(given) {
    given.serving(({ sessions, changesOn }) => {
      const [route] = given.routes
      if (route) plugin = { sessions, changes: changesOn(route) }
    })
    // As one that asks an authorization server: a client may be gone before its request is served.
    given.identify(async (_ctx, next) => {
      await sleep(ASKING_TIME)
      await next()
    })
  },
})

const host = await createHost(
  {
    server: { name: 'soaked', version: '1.0.0' },
    http: { port: 0 },
    secrets: ['a secret for tests, long enough to be one'],
    // A machine that stands still holds the event loop as a handler would.
    tools: { stallWarning: 'off' },
    sessions: { idleTimeout: IDLE_TIMEOUT },
    toolsets: { soaked },
    routes: { '/': { toolsets: 'soaked' } },
    plugins: { 'transport-streamable': {}, 'transport-sse': {}, look: look() },
    // As one that asks a database: a client may be gone before its session is there.
    async configureSession() {
      opened++
      await sleep(ASKING_TIME)
    },
  },
  { log },
)

async function measure(): Promise<Holding> {
  for (let look = 0; look < LOOKS && plugin.sessions.count > 0; look++) {
    await sleep(LOOK)
  }
  for (let round = 0; round < 4; round++) {
    await turn()
    globalThis.gc?.()
  }
  const resources: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1
  return {
    opened,
    sessions: plugin.sessions.count,
    subscribers: plugin.changes.size,
    heap: process.memoryUsage().heapUsed,
    resources,
    complaints,
  }
}

process.on('message', async (message: string) => {
  if (message === 'measure') process.send?.(await measure())
  else {
    await host.close({ grace: 0 })
    process.off('disconnect', leave)
    process.disconnect()
  }
})
// Whoever started it is gone.
const leave = () => process.exit(1)
process.once('disconnect', leave)
await host.listen()
process.send?.({ url: host.url })
