// A host process that reports what it still holds. Run it with --expose-gc and an IPC channel: it listens, sends `{ url }`, answers
// each `measure` once its last session has ended (or the wait for it has), and exits after `close`.
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { createHost } from '../../core/create-host.ts'
import { defineResource, defineTool } from '../../core/index.ts'
import { definePlugin, type Services } from '../../core/internal.ts'
import type { Logger } from '../../core/plugin.ts'
import type { ChangeFeed } from '../../core/transport.ts'

export interface Holding {
  /** Sessions opened so far, and sessions left. */
  readonly opened: number
  readonly sessions: number
  /** Subscribers to changes. */
  readonly subscribers: number
  /** Bytes, after garbage collection. */
  readonly heap: number
  /** Handles and timers by kind. */
  readonly resources: Readonly<Record<string, number>>
  /** Log lines of warnings and errors. */
  readonly complaints: readonly string[]
}

/** Milliseconds between two checks for the last session, and the maximum number of checks. */
const LOOK = 20
const LOOKS = 1_000
const IDLE_TIMEOUT = '400ms'
/** Milliseconds for authentication and `configureSession`. */
const ASKING_TIME = 10

let plugin: Pick<Services, 'sessions'> & { readonly changes: ChangeFeed }
let opened = 0
const complaints: string[] = []
const complain = (fields: object, message?: string) => void complaints.push(JSON.stringify({ message, ...fields }))
const ignore = () => undefined
/** Keeps warnings and errors only. */
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
    // The time that a call waits for its client does not count for its `timeout`.
    handler: (_args, { elicit }) =>
      Promise.race([elicit({ message: 'Who are you?', requestedSchema: form }), sleep(200, 'no response')]),
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
    given.onReady(() => {
      const { sessions, changesOn } = given.services
      const [route] = given.routes
      if (route) plugin = { sessions, changes: changesOn(route) }
    })
    // As slow as a request to an authorization server: the client may disconnect before its request is served.
    given.authenticate(async (_ctx, next) => {
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
    sessions: { idleTimeout: IDLE_TIMEOUT },
    toolsets: { soaked },
    routes: { '/': { toolsets: 'soaked' } },
    plugins: { 'transport-streamable': {}, 'transport-sse': {}, look: look() },
    // As slow as a database query: the client may disconnect before its session exists.
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
// The parent process has ended.
const leave = () => process.exit(1)
process.once('disconnect', leave)
await host.listen()
process.send?.({ url: host.url })
