// Compile-time only: what `defineTool` infers for handlers and what it refuses. A type that changes fails `npm run types`.
import { z } from 'zod'
import { type CallToolResult, defineTool, type ToolDefinition } from '../../core/index.ts'

const output = z.object({ total: z.number(), unit: z.enum(['km', 'mi']) })
const text = String(Math.random())

type ReturnOf<Tool> = Tool extends ToolDefinition<infer _Args, infer Return, infer _Given> ? Return : never
type Same<One, Other> = (<T>() => T extends One ? 1 : 2) extends <T>() => T extends Other ? 1 : 2 ? true : false
type Holds<T extends Record<keyof T, true>> = T

export const plain = defineTool({ name: 'plain', output, handler: _args => ({ total: 1, unit: 'km' }) })
export const plainAsync = defineTool({ name: 'plain', output, handler: async _args => ({ total: 1, unit: 'km' }) })
export const whole = defineTool({
  name: 'whole',
  output,
  handler: _args => ({ content: [{ type: 'text', text }], structuredContent: { total: 1, unit: 'km' } }),
})
export const blocksAndMeta = defineTool({
  name: 'blocks-and-meta',
  output,
  handler: async _args => ({
    content: [
      { type: 'text', text },
      { type: 'resource_link', uri: 'a:b', name: 'b' },
    ],
    structuredContent: { total: 1, unit: 'km' },
    _meta: { at: 1 },
  }),
})
export const branches = defineTool({
  name: 'branches',
  input: z.object({ fails: z.boolean() }),
  output,
  async handler({ fails }) {
    if (fails) return { content: [{ type: 'text', text: 'failed' }], isError: true }
    if (text === '') return { total: 1, unit: 'mi' }
    return { content: [{ type: 'text', text }], structuredContent: { total: 1, unit: 'km' } }
  },
})
export const promise = defineTool({
  name: 'promise',
  output,
  handler: _args => new Promise(resolve => resolve({ total: 1, unit: 'km' })),
})
export const annotated = defineTool({
  name: 'annotated',
  output,
  handler: (): CallToolResult<z.infer<typeof output>> => ({
    content: [{ type: 'text', text }],
    structuredContent: { total: 1, unit: 'km' },
  }),
})

// Without parameters, the handler's type is inferred before `output`: blocks keep their literal types, other literals do not.
export const withoutParameters = defineTool({
  name: 'without-parameters',
  output,
  handler: async () => ({
    content: [{ type: 'text', text }],
    structuredContent: { total: 1, unit: 'km' as const },
  }),
})
export const scalar = defineTool({ name: 'scalar', output: z.number(), handler: () => 1 })
export const wholeScalar = defineTool({
  name: 'whole-scalar',
  output: z.number(),
  handler: () => ({ content: [{ type: 'text', text }], structuredContent: 1 }),
})
export const list = defineTool({ name: 'list', output: z.array(z.string()), handler: async () => ['a'] })
export const anything = defineTool({
  name: 'anything',
  output: z.unknown(),
  handler: () => ({ content: [{ type: 'text', text }] }),
})

export const wrongValue = defineTool({
  name: 'wrong-value',
  output,
  // @ts-expect-error: `structuredContent.unit` has another value
  handler: _args => ({ content: [{ type: 'text', text }], structuredContent: { total: 1, unit: 'm' } }),
})
export const missing = defineTool({
  name: 'missing',
  output,
  // @ts-expect-error: `structuredContent` lacks `unit`
  handler: async _args => ({ content: [{ type: 'text', text }], structuredContent: { total: 1 } }),
})
export const plainMissing = defineTool({
  name: 'plain-missing',
  output,
  // @ts-expect-error: the output lacks `unit`
  handler: () => ({ total: 1 }),
})
export const wrongBlock = defineTool({
  name: 'wrong-block',
  output,
  // @ts-expect-error: there is no block of this type
  handler: _args => ({ content: [{ type: 'movie', text }], structuredContent: { total: 1, unit: 'km' } }),
})
export const unknownContent = defineTool({
  name: 'unknown-content',
  output,
  // @ts-expect-error: the annotation does not say what `structuredContent` is
  handler: (): CallToolResult => ({ content: [{ type: 'text', text }], structuredContent: { total: 1 } }),
})

// Without an `output`, the handler returns any value.
export const json = defineTool({
  name: 'json',
  output: { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] },
  handler: () => ({ content: [{ type: 'text', text }], structuredContent: { total: 1 } }),
})

export const later = defineTool({ name: 'later', handler: () => new Promise<string>(resolve => resolve('')) })
export const laterBare = defineTool({
  name: 'later',
  handler: () => new Promise(resolve => setTimeout(resolve, 1, 'a')),
})
export const laterVoid = defineTool({
  name: 'later',
  handler: (_args, { signal }) => new Promise(resolve => signal.addEventListener('abort', resolve)),
})
export const laterNever = defineTool({ name: 'later', handler: () => new Promise(() => undefined) })
export const laterReject = defineTool({
  name: 'later',
  handler: (_, { signal }) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('a')))),
})
export const nothing = defineTool({ name: 'nothing', handler() {} })
export const nothingAsync = defineTool({ name: 'nothing', async handler() {} })
export const throws = defineTool({
  name: 'throws',
  handler() {
    throw new Error('no')
  },
})
export const structured = defineTool({
  name: 'structured',
  input: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
  handler: async ({ a }) => ({ total: a.length, label: a }),
})
export const blocks = defineTool({ name: 'blocks', handler: () => [{ type: 'text', text }] })
export const wholeFree = defineTool({
  name: 'whole-free',
  handler: async () => ({ content: [{ type: 'text', text }] }),
})

export type Returns = Holds<{
  later: Same<ReturnOf<typeof later>, string>
  nothing: Same<ReturnOf<typeof nothing>, never>
  structured: Same<ReturnOf<typeof structured>, { total: number; label: string }>
  whole: Same<ReturnOf<typeof whole>['structuredContent'], { total: number; unit: 'km' }>
}>
