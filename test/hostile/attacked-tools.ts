// The tools of the attacked host: every kind that clients can use for expensive work, waiting or requests.
import { setTimeout as sleep } from 'node:timers/promises'
import { definePrompt, defineResource, defineTool, ToolError, type User } from '../../core/index.ts'
import { SUM } from '../fixtures/sum.ts'
import type { Markers } from './target.ts'

const form = {
  message: 'Who are you?',
  requestedSchema: {
    type: 'object',
    properties: { name: { type: 'string', maxLength: 50 }, age: { type: 'integer' } },
    required: ['name'],
  },
} as const
const hello = { messages: [{ role: 'user' as const, content: { type: 'text', text: 'Hello?' } }], maxTokens: 5 }

const quick = [
  defineTool({
    name: 'add',
    ...SUM,
    // A sum past all numbers would be null in JSON.
    handler: ({ a, b }) => ({ sum: Number.isFinite(a + b) ? a + b : 0 }),
  }),
  defineTool({
    name: 'register',
    input: {
      type: 'object',
      properties: {
        name: { type: 'string', pattern: '^[a-z][a-z0-9-]{0,62}$', maxLength: 63 },
        mail: { type: 'string', format: 'email', maxLength: 200 },
        page: { type: 'string', format: 'uri', maxLength: 500 },
        born: { type: 'string', format: 'date-time', maxLength: 40 },
        tags: { type: 'array', items: { type: 'string', maxLength: 50 }, uniqueItems: true, maxItems: 50 },
        address: {
          anyOf: [
            { type: 'object', properties: { street: { type: 'string' } }, required: ['street'] },
            { type: 'array', items: { type: 'string' }, maxItems: 10 },
          ],
        },
        level: { enum: ['low', 'high'] },
      },
      required: ['name'],
    },
    handler: ({ name }) => `registered ${name}`,
  }),
  defineTool({
    name: 'echo',
    input: { type: 'object', properties: { text: { type: 'string', maxLength: 10_000 } } },
    handler: ({ text = '' }) => text,
  }),
  defineTool({
    name: 'stock',
    input: {
      type: 'object',
      properties: { region: { type: 'string', 'x-mcp-header': 'Region', maxLength: 100 } },
      required: ['region'],
    },
    handler: ({ region }) => `Everything is there in ${region}.`,
  }),
  defineTool({
    name: 'large',
    input: { type: 'object', properties: { kilobytes: { type: 'integer', minimum: 1, maximum: 4_096 } } },
    handler: ({ kilobytes = 1_024 }) => 'x'.repeat(kilobytes * 1_024),
  }),
]

const slow = [
  defineTool({
    name: 'wait',
    timeout: '3s',
    input: { type: 'object', properties: { ms: { type: 'integer', minimum: 0, maximum: 2_000 } } },
    handler: async ({ ms = 500 }, { signal }) => {
      await sleep(ms, undefined, { signal }).catch(() => undefined)
      return 'waited'
    },
  }),
  defineTool({
    name: 'talk',
    timeout: '20s',
    async handler(_args, { log, progress, signal }) {
      for (let index = 1; index <= 20 && !signal.aborted; index++) {
        progress(index, 20, 'talking')
        log('info', { index, filler: 'x'.repeat(500) })
        await sleep(10)
      }
      return 'said'
    },
  }),
  defineTool({
    name: 'let_go',
    timeout: '3s',
    async handler(_args, { disconnect, progress }) {
      progress(1)
      disconnect(10)
      await sleep(300)
      return 'came back'
    },
  }),
]

/** A tool's `timeout` does not include the time that it waits for its client. */
const inTime = <Answer>(answer: Promise<Answer>): Promise<Answer> =>
  Promise.race([
    answer,
    sleep(3_000, undefined, { ref: false }).then(() => {
      throw new ToolError('no response within 3 s')
    }),
  ])

const asking = [
  defineTool({ name: 'ask', handler: async (_args, { elicit }) => (await inTime(elicit(form))).action }),
  defineTool({ name: 'sample', handler: async (_args, { sample }) => (await inTime(sample(hello))).model }),
  defineTool({
    name: 'roots',
    handler: async (_args, { roots }) => `${(await inTime(roots())).roots.length} roots`,
  }),
  defineTool({
    name: 'ask_all',
    async handler(_args, { elicit, roots }) {
      const both = Promise.all([elicit(form, { key: 'who' }), roots({ key: 'where' })])
      const [answer, folders] = await inTime(both)
      return { action: answer.action, roots: folders.roots.length }
    },
  }),
]

let added = 0

const changing = defineTool({
  name: 'change',
  async handler(_args, { host }) {
    host.resourceUpdated('pages://one')
    const name = `added_${++added}`
    host.tools.add(defineTool({ name, handler: () => name }), { toolset: 'changing' })
    await sleep(20)
    host.tools.remove(name, { toolset: 'changing' })
    return 'changed'
  },
})

const shelves = ['fiction', 'history', 'poetry']
const startsWith = (value: string) => shelves.filter(shelf => shelf.startsWith(value))

const others = [
  ...Array.from({ length: 20 }, (_, index) =>
    defineResource({
      name: `family ${index}`,
      uriTemplate: `family${index}://{a}/{b}/{+rest}`,
      handler: ({ a, b }) => (a === 'none' ? undefined : `${a}: ${b}`),
    }),
  ),
  defineResource({ name: 'one', uri: 'pages://one', handler: () => 'the first page' }),
  defineResource({ name: 'bytes', uri: 'pages://bytes', handler: () => new Uint8Array(1_000) }),
  defineResource({
    name: 'book',
    uriTemplate: 'books://{shelf}/{title}',
    complete: { shelf: startsWith },
    handler: ({ shelf = '', title = '' }) => (shelves.includes(shelf) ? `${title}, of ${shelf}` : undefined),
  }),
  definePrompt({
    name: 'review',
    arguments: { shelf: { required: true, complete: startsWith }, tone: { description: 'How it sounds' } },
    handler: ({ shelf, tone = 'kind' }) => `Review ${shelf}, ${tone}.`,
  }),
]

/** What belongs to one user; nobody else may ever read it. */
function own(markers: Markers) {
  const markOf = (user: User | undefined) => new Map(Object.entries(markers)).get(user?.subject ?? '') ?? 'none'
  return [
    defineTool({ name: 'whoami', handler: (_args, { user }) => markOf(user) }),
    defineTool({
      name: 'murmur',
      timeout: '20s',
      async handler(_args, { log, progress, user, signal }) {
        for (let index = 1; index <= 20 && !signal.aborted; index++) {
          progress(index, 20, markOf(user))
          log('info', markOf(user))
          await sleep(50)
        }
        return markOf(user)
      },
    }),
    defineResource({ name: 'diary', uri: 'diary://mine', handler: (_args, { user }) => markOf(user) }),
  ]
}

export const toolsFor = (markers: Markers) => ({
  open: [...quick, ...slow, ...asking, ...others, ...own(markers)],
  changing: [changing],
})

/** What nobody may see without the right: each name, description and result is marked. */
export const guardedFor = ({ guarded }: Markers) => [
  defineTool({
    name: 'open_vault',
    description: guarded,
    input: { type: 'object', properties: { [guarded]: { type: 'string', 'x-mcp-header': 'Vault' } } },
    handler: () => guarded,
  }),
  defineResource({ name: 'vault', uri: 'vault://gold', description: guarded, handler: () => guarded }),
  defineResource({ name: 'vaults', uriTemplate: 'vault://of/{owner}', description: guarded, handler: () => guarded }),
  definePrompt({
    name: 'unlock',
    description: guarded,
    arguments: { [guarded]: { complete: () => [guarded] } },
    handler: () => guarded,
  }),
]

/** The same, guarded by rules of tool-policy on a route that is open. */
export const policedFor = ({ guarded }: Markers) => [
  defineTool({
    name: 'purge',
    description: guarded,
    input: { type: 'object', properties: { [guarded]: { type: 'string', 'x-mcp-header': 'Purge' } } },
    handler: () => guarded,
  }),
  defineResource({ name: 'secret', uri: 'secret://one', description: guarded, handler: () => guarded }),
  defineResource({ name: 'secrets', uriTemplate: 'secret://of/{owner}', handler: () => guarded }),
  definePrompt({
    name: 'secret_words',
    description: guarded,
    arguments: { [guarded]: { required: true, complete: () => [guarded] } },
    handler: () => guarded,
  }),
]
