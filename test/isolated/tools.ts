// Isolated tools: correct ones, and tools that misbehave in every known way.
import { pbkdf2Sync } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { isMainThread, parentPort, threadId } from 'node:worker_threads'
import { z } from 'zod'
import { type CallContext, defineTool, HostError, ToolError } from '../../core/index.ts'

const isolate = { memory: '96mb', cpuTime: '300ms', processes: 2 } as const
const text = {
  type: 'object',
  properties: { text: { type: 'string' } },
  required: ['text'],
  additionalProperties: false,
} as const

export const echo = defineTool({ name: 'echo', isolate, input: text, handler: ({ text }) => text })
export const plain = defineTool({ name: 'plain', input: text, handler: ({ text }) => text })
export const leaks = defineTool({
  name: 'leaks',
  isolate,
  output: z.object({ name: z.string() }),
  handler: () => ({ name: 'a', password: 'hunter2' }),
})
/** Uses members of `ctx` that a plugin of the test adds. */
export const members = defineTool({
  name: 'members',
  isolate,
  input: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } as const,
  async handler({ name }, ctx) {
    const shown = JSON.stringify(Object.getOwnPropertyDescriptor(ctx, 'vault')?.value ?? 'no value')
    const member: unknown = Reflect.get(ctx, name)
    return `${shown} ${typeof member === 'function' ? await member() : String(member)}`
  },
})
export const where = defineTool({
  name: 'where',
  isolate,
  handler: () => ({ isMainThread, threadId, importedByMain: isMainThread, pid: process.pid }),
})

const alone = { processes: 1 } as const
/** Work that its call leaves behind asks later. */
export const leaves_question = defineTool({
  name: 'leaves_question',
  isolate: alone,
  handler(_, { elicit }) {
    setTimeout(() => void elicit({ message: 'Left behind?', requestedSchema: { type: 'object', properties: {} } }), 100)
    return 'left'
  },
})
/** The callback of an emitter that the module made throws later. */
const shared = new EventEmitter()
setInterval(() => shared.emit('tick'), 20).unref()
export const leaves_error = defineTool({
  name: 'leaves_error',
  isolate: alone,
  handler() {
    const end = Date.now() + 100
    shared.on('tick', function fail() {
      if (Date.now() < end) return
      shared.off('tick', fail)
      throw new ToolError('data of the first caller')
    })
    return 'left'
  },
})
export const pauses = defineTool({ name: 'pauses', isolate: alone, handler: () => pause(400, 'paused') })

/** In a list, as modules may export them. */
export const list = [
  defineTool({ name: 'first', isolate, handler: () => 'first' }),
  defineTool({ name: 'second', isolate, handler: () => 'second' }),
]

/** They share one process. One more than can wait for it. */
export const crowd = Array.from({ length: 101 }, (_, n) =>
  defineTool({ name: `crowd_${n}`, isolate: { ...isolate, processes: 1 }, handler: () => 'one of many' }),
)

/** Never called with what is harmless: the compiler must not see that a loop has no end. */
const isTrue = () => Date.now() > 0

const hogs: Readonly<Record<string, () => unknown>> = {
  loop() {
    while (isTrue()) Math.sqrt(2)
  },
  regex: () => /^(a+)+$/.test(`${'a'.repeat(60)}b`),
  promises: async () => {
    while (isTrue()) await undefined
  },
  immediates: () =>
    new Promise(() => {
      const again = () => void setImmediate(again)
      again()
    }),
}

const memoryHogs: Readonly<Record<string, () => unknown>> = {
  /** Counted: where the compiler knows no end it keeps looking for interrupts. */
  lists() {
    const all: number[][] = []
    for (let n = 0; n < 1e7; n++) all.push(new Array(1_000).fill(n))
  },
  buffers() {
    const all: Buffer[] = []
    while (isTrue()) all.push(Buffer.alloc(1e6, 1))
  },
  fork: async () => {
    const fork = async (): Promise<unknown> => {
      await undefined
      return Promise.all([fork(), fork()])
    }
    await fork()
  },
}

/** As an endless loop, each with more time than its memory lasts. */
const named = (kind: string, bounds: typeof isolate | object, table: typeof hogs) =>
  Object.entries(table).map(([name, handler]) =>
    defineTool({ name: `${kind}_${name}`, isolate: bounds, handler: async () => `${await handler()}` }),
  )
export const loops = named('loop', isolate, hogs)
export const hoarders = named('hog', { ...isolate, cpuTime: '60s' }, memoryHogs)

let kept: Buffer[] = []

const odd: Readonly<Record<string, (n: number) => unknown>> = {
  recursion: () => {
    const down = (n: number): number => down(n + 1) + 1
    return down(0)
  },
  exit: n => process.exit(n),
  later: async () => {
    setTimeout(() => {
      throw new Error('thrown in a timer')
    }, 1)
    await pause(1e6)
  },
  afterwards: () => {
    setTimeout(() => {
      throw new Error('thrown after the answer')
    }, 20)
    return 'answered'
  },
  rejection: async () => {
    Promise.reject(new Error('rejected by nobody')) as unknown
    await pause(1e6)
  },
  never: () => new Promise(() => undefined),
  twice: () => {
    parentPort?.postMessage({ kind: 'value', id: 0, value: 'forged' })
    return 'answered'
  },
  huge: n => 'x'.repeat(n * 1e6),
  keeps: n => {
    kept.push(Buffer.alloc(n * 1e6, 1))
    return kept.length
  },
  forgets: () => {
    kept = []
    return 'forgotten'
  },
  pollutes: () => {
    Reflect.set(Object.prototype, 'polluted', 'yes')
    Reflect.set(Array.prototype, 'push', () => 0)
    Reflect.set(globalThis, 'fetch', undefined)
    process.env['POLLUTED'] = 'yes'
    return `${Reflect.get({}, 'polluted')}`
  },
  failing: () => {
    throw new ToolError('Take another text.')
  },
  hidden: () => {
    throw new TypeError('a secret of the tool')
  },
  refused: () => {
    throw new HostError('forbidden', { detail: 'not for you' })
  },
  gives_function: () => ({ at: { do: () => 1 } }),
  gives_instance: () => ({ url: new URL('https://mcp.example') }),
  gives_buffer: () => ({ bytes: Buffer.from('x') }),
  native: n => pbkdf2Sync('a', 'b', n, 64, 'sha512').length,
  sleeps: async n => {
    await pause(n)
    return 'slept'
  },
}
export const oddities = Object.entries(odd).map(([name, handler]) =>
  defineTool({
    name: `odd_${name}`,
    isolate,
    input: { type: 'object', properties: { n: { type: 'number' } } } as const,
    handler: async ({ n = 0 }) => (await handler(n)) as string,
  }),
)

export const sees = defineTool({
  name: 'sees',
  isolate,
  handler: (_, ctx) => {
    const { user, session, route, headers, client, meta } = ctx
    const isFrozen = user !== undefined && Object.isFrozen(user) && Object.isFrozen(user.claims)
    const facts = { subject: user?.subject, isFrozen, session: session?.id, path: route.path, params: route.params }
    return { ...facts, agent: headers['x-agent'], client: client.info?.name, revision: client.revision, meta }
  },
})

export const tells = defineTool({
  name: 'tells',
  isolate,
  handler: (_, { progress, log }) => {
    progress(1, 2, 'half')
    log('warning', { text: 'nearly' }, 'tells')
    progress(2, 2)
    return 'told'
  },
})

export const chatters = defineTool({
  name: 'chatters',
  isolate,
  handler: (_, { progress, log }) => {
    for (let n = 0; isTrue(); n++) {
      progress(n)
      log('info', n)
    }
  },
})

export const asksTwo = defineTool({
  name: 'asks_two',
  isolate,
  handler: async (_, { elicit, roots }) => {
    const requestedSchema = { type: 'object', properties: { city: { type: 'string' } } } as const
    const [where, known] = await Promise.all([elicit({ message: 'Which city?', requestedSchema }), roots()])
    const again = await elicit({ message: 'Sure?', requestedSchema: { type: 'object', properties: {} } })
    return { city: where.content?.['city'], roots: known.roots.length, sure: again.action }
  },
})

const form = { type: 'object', properties: { pin: { type: 'string' } } } as const

async function guess({ elicit }: CallContext) {
  for (;;) {
    const { content } = await elicit({ message: 'Which PIN?', requestedSchema: form })
    if (content?.['pin'] === 'right') return 'right'
  }
}

/** Asks until the answer is right. */
export const guesses = defineTool({
  name: 'guesses',
  isolate: { ...isolate, cpuTime: '30s' },
  handler: (_, ctx) => guess(ctx),
})

/** Computes in each run. */
export const guessesSlowly = defineTool({
  name: 'guesses_slowly',
  isolate,
  handler: (_, ctx) => {
    const begun = performance.now()
    while (performance.now() - begun < 50) Math.sqrt(2)
    return guess(ctx)
  },
})

/** Asks after it has fetched. */
export const fetchesAndAsks = defineTool({
  name: 'fetches_and_asks',
  isolate,
  timeout: '1m',
  input: { type: 'object', properties: { url: { type: 'string' } }, required: ['url'] } as const,
  handler: async ({ url }, { elicit }) => {
    await fetch(url)
    const { action } = await elicit({ message: 'Continue?', requestedSchema: form })
    return action
  },
})

export const wantsToken = defineTool({
  name: 'wants_token',
  isolate,
  handler: async (_, { upstreamToken }) => (await upstreamToken({ scope: 'api' })).length,
})

export const fetches = defineTool({
  name: 'fetches',
  isolate,
  input: { type: 'object', properties: { url: { type: 'string' } }, required: ['url'] } as const,
  handler: async ({ url }, ctx) => (await ctx.fetch(url)).text(),
})

export const stays = defineTool({
  name: 'stays',
  isolate,
  input: { type: 'object', properties: { url: { type: 'string' } }, required: ['url'] } as const,
  handler: async ({ url }) => {
    await fetch(url)
    await new Promise(() => undefined)
  },
})

export const changes = defineTool({
  name: 'changes',
  isolate,
  handler: async (_, { host }) => {
    host.resourceUpdated('test://one')
    await host.settled()
    try {
      host.tools.remove('echo')
    } catch (error) {
      return `${error}`
    }
  },
})

export const obeys = defineTool({
  name: 'obeys',
  isolate,
  timeout: '200ms',
  handler(_, { log, signal }) {
    log('error', 'begun')
    return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  },
})

export const ignores = defineTool({
  name: 'ignores',
  isolate,
  timeout: '200ms',
  handler(_, { log }) {
    log('error', 'begun')
    return new Promise(() => undefined)
  },
})
