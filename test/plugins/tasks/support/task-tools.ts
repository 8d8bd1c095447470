// Tools that run as tasks and wait at gates that tests open: nothing in them takes time by itself. And a host that has them.

import { type CallContext, type Config, defineTool, HostError, ToolError } from '../../../../core/index.ts'
import type { TaskStore } from '../../../../plugins/families/task-store/index.ts'
import { identifyByHeader } from '../../../fixtures/identify-by-header.ts'
import { plugin } from '../../../fixtures/plugins.ts'
import { createGate, type Gate } from '../../../support/gate.ts'
import { type StartOptions, startHost } from '../../../support/start-host.ts'

const input = { type: 'object', properties: { key: { type: 'string' } } } as const
export const form = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
} as const

/** What the handlers of one test did. */
export function createBench() {
  const gates = new Map<string, Gate>()
  const gate = (key: string): Gate => {
    const found = gates.get(key) ?? createGate()
    gates.set(key, found)
    return found
  }
  const began: string[] = []
  const aborted: string[] = []
  const seen: CallContext[] = []

  async function wait(key: string, ctx: CallContext) {
    began.push(key)
    seen.push(ctx)
    const over = new Promise<never>((_, reject) => {
      ctx.signal.addEventListener('abort', () => {
        aborted.push(key)
        reject(ctx.signal.reason)
      })
    })
    await Promise.race([gate(key).opened, over])
    return `done ${key}`
  }
  const elicit = async (ctx: CallContext, message = 'Who?') => {
    const { content } = await ctx.elicit({ message, requestedSchema: form })
    return String(content?.['name'])
  }
  const tools = [
    defineTool({ name: 'slow', task: 'optional', input, handler: ({ key = '' }, ctx) => wait(key, ctx) }),
    defineTool({
      name: 'again',
      task: { use: 'optional', retry: 'safe' },
      input,
      handler: ({ key = '' }, ctx) => wait(key, ctx),
    }),
    defineTool({ name: 'required', task: 'required', input, handler: ({ key = '' }) => `done ${key}` }),
    defineTool({
      name: 'stubborn',
      task: 'optional',
      input,
      concurrency: 1,
      async handler({ key = '' }) {
        began.push(key)
        await gate(key).opened
        return `done ${key}`
      },
    }),
    defineTool({ name: 'ask', task: 'optional', handler: async (_, ctx) => `hello ${await elicit(ctx)}` }),
    defineTool({
      name: 'ask-twice',
      task: 'optional',
      handler: async (_, ctx) => (await Promise.all([elicit(ctx, 'One?'), elicit(ctx, 'Two?')])).join(' and '),
    }),
    defineTool({
      name: 'ask-all',
      task: 'optional',
      async handler(_, ctx) {
        const sampled = await ctx.sample({ messages: [], maxTokens: 1 })
        const { roots } = await ctx.roots({ key: 'places' })
        return [sampled.model, ...roots.map(({ uri }) => uri)].join(' ')
      },
    }),
    defineTool({
      name: 'ask-then-wait',
      task: { use: 'optional', retry: 'safe' },
      input,
      async handler({ key = '' }, ctx) {
        const name = await elicit(ctx)
        return `${await wait(key, ctx)} for ${name}`
      },
    }),
    defineTool({
      name: 'before',
      task: { use: 'optional', before: async (_, ctx) => ({ key: await elicit(ctx) }) },
      input,
      handler: ({ key }) => `before ${key}`,
    }),
    defineTool({
      name: 'reports',
      task: 'optional',
      input,
      async handler({ key = '' }, ctx) {
        ctx.log('info', 'no client hears this')
        ctx.progress(1, 2, 'half of it')
        return wait(key, ctx)
      },
    }),
    defineTool({
      name: 'wrong',
      task: 'optional',
      handler: () => {
        throw new ToolError('the printer is on fire')
      },
    }),
    defineTool({
      name: 'refuses',
      task: 'optional',
      handler: () => {
        throw new HostError('invalidParams', { detail: 'not like this', data: { part: 'all' } })
      },
    }),
    defineTool({
      name: 'large',
      task: 'optional',
      input: { type: 'object', properties: { size: { type: 'integer' }, text: { type: 'string' } } } as const,
      handler: ({ size = 0 }) => 'x'.repeat(size),
    }),
    defineTool({
      name: 'who',
      task: 'optional',
      handler: (_, ctx) => JSON.stringify([ctx.user, ctx.headers, ctx.meta]),
    }),
    defineTool({ name: 'plain', input, handler: ({ key = '' }) => `done ${key}` }),
  ]
  return { tools, gate, began, aborted, seen, open: (key: string) => gate(key).open() }
}

export type Bench = ReturnType<typeof createBench>

export type TaskOptions = Exclude<NonNullable<Config['plugins']>['tasks'], false | undefined>

/** A plugin that puts a store into its slot. */
export const fillStore = (store: TaskStore) =>
  plugin(host => host.provide('taskStore', store), { provides: ['taskStore'] })

/** Starts a host with these tools and options; `store`: in the place of the default. */
export const startTasks = (
  bench: Bench,
  options: TaskOptions = {},
  store?: TaskStore,
  more: Partial<Config> = {},
  start: StartOptions = {},
) =>
  startHost(
    {
      routes: {
        '/': { toolsets: 'all' },
        '/other': { toolsets: 'all' },
        '/off': { toolsets: 'none', plugins: { tasks: false } },
      },
      ...more,
      toolsets: { all: bench.tools, none: [], ...(more.toolsets ?? {}) },
      plugins: {
        'transport-streamable': {},
        identify: identifyByHeader(),
        ...(store && { store: fillStore(store) }),
        tasks: { pollInterval: '20ms', ...options },
        ...more.plugins,
      },
    },
    undefined,
    start,
  )
