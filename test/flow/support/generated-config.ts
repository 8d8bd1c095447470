// Generated configs and callers, the model of who can use which item, and the config of the host.
import { join } from 'node:path'
import fc from 'fast-check'
import { z } from 'zod'
import {
  type Config,
  type Definition,
  definePrompt,
  defineResource,
  defineTool,
  type RouteSettings,
  ToolError,
  type User,
} from '../../../core/index.ts'
import type { ToolPolicyOptions } from '../../../plugins/tool-policy/index.ts'
import { bearerJson } from '../../plugins/tool-policy/bearer-json.ts'
import { ISOLATED } from './isolated-tool.ts'

const oneOf = <const Values extends readonly unknown[]>(...values: Values): fc.Arbitrary<Values[number]> =>
  fc.constantFrom(...values)

const POLICIES = {
  anyone: {},
  reader: { scope: 'read' },
  staff: { role: 'staff' },
  chief: { scope: ['read', 'write'], role: 'staff' },
} satisfies ToolPolicyOptions['policies']
type Policy = keyof typeof POLICIES

/** Names of items, contained in all their texts. No two are similar, and no other text of the host contains one. */
const WORDS = ['quartz', 'walnut', 'ferret', 'nimbus', 'copper', 'lagoon', 'saffron', 'tundra', 'orchid', 'velvet']
/** Thrown by handlers, and removed by output schemas. */
export const SECRET = 'hunter2'
/** A name that no item has. */
export const UNKNOWN = 'zigzag'

const policy = oneOf<readonly (Policy | undefined)[]>(undefined, undefined, 'anyone', 'reader', 'staff', 'chief')

const item = fc.record({
  kind: oneOf('tool', 'tool', 'tool', 'tool', 'prompt', 'resource'),
  /** How the item is added; `added`: in the toolset of `addToolset`. */
  origin: oneOf('route', 'route', 'added', 'session.add', 'runtime', 'runtime, added'),
  access: policy,
  rule: policy,
  listed: oneOf(false, false, true),
  answer: oneOf('text', 'structured', 'ToolError', 'throws'),
  task: oneOf(undefined, 'optional', 'required'),
  limited: oneOf(false, false, true),
  queued: fc.boolean(),
})

const config = fc.record({
  path: oneOf('/mcp', '/mcp/:set', '/mcp/:set?'),
  /** The parameter names any toolset but internal ones; otherwise only the listed one. */
  isOpen: oneOf(true, true, false),
  internal: oneOf(true, true, false),
  authorize: oneOf<readonly (Policy | undefined)[]>(undefined, undefined, 'anyone', 'reader'),
  onDenied: oneOf('challenge', 'error'),
  stateless: oneOf(false, false, true),
  revision: oneOf('2025-11-25', '2025-06-18', '2025-03-26'),
  search: fc.boolean(),
  tasks: fc.boolean(),
  limits: fc.boolean(),
  isolated: fc.record({ used: oneOf(true, false, false), rule: policy }),
  /** For whom `configureSession` adds to the offer. */
  hook: oneOf('nobody', 'everybody', 'staff', 'staff', 'header'),
  items: fc.array(item, { minLength: 5, maxLength: WORDS.length }),
})

/** What a token grants. */
const token = fc.record({ read: fc.boolean(), write: fc.boolean(), staff: fc.boolean() })
const caller = fc.record({
  isAnonymous: oneOf(false, false, true),
  header: fc.boolean(),
  /** One after the other, in one session: the second grants a role that the first does not, or the reverse. */
  tokens: fc.tuple(token, token).map(([one, other]) => [one, { ...other, staff: !one.staff }]),
})

type ConfigDraft = typeof config extends fc.Arbitrary<infer Value> ? Value : never
export type ItemDraft = ConfigDraft['items'][number] & { readonly word: string }
export type GeneratedConfig = Omit<ConfigDraft, 'items'> & { readonly items: readonly ItemDraft[] }

/** A caller with one of its tokens; `user` undefined: anonymous. */
export interface Caller {
  readonly user: Partial<User> | undefined
  readonly header: boolean
}

/** A config, and callers, each with several tokens. */
export const generated: fc.Arbitrary<readonly [GeneratedConfig, ReadonlyArray<readonly Caller[]>]> = fc
  .tuple(config, fc.array(caller, { minLength: 2, maxLength: 2 }))
  .map(([draft, callers]) => [
    { ...draft, items: [...draft.items.map((item, at) => complete(item, draft, at)), ...isolatedItem(draft)] },
    callers.map(({ isAnonymous, header, tokens }, at) =>
      tokens.map(({ read, write, staff }) => {
        const scopes = [...(read ? ['read'] : []), ...(write ? ['write'] : [])]
        const user = { subject: `caller-${at}`, scopes, roles: staff ? ['staff'] : [] }
        return { user: isAnonymous ? undefined : user, header }
      }),
    ),
  ])

/** Adds the name, and removes settings that do not apply to the kind or the config. */
function complete(draft: ConfigDraft['items'][number], { tasks, limits }: ConfigDraft, at: number): ItemDraft {
  const isTool = draft.kind === 'tool'
  return {
    ...draft,
    word: WORDS[at] ?? UNKNOWN,
    task: tasks && isTool ? draft.task : undefined,
    limited: limits && isTool && draft.limited,
  }
}

const isolatedItem = ({ isolated }: ConfigDraft): ItemDraft[] =>
  isolated.used
    ? [
        {
          ...{ kind: 'tool', origin: 'route', access: undefined, rule: isolated.rule, listed: false, answer: 'text' },
          ...{ task: undefined, limited: false, queued: false, word: ISOLATED },
        },
      ]
    : []

/** Calls per user of a limited tool. */
export const LIMIT = 3

export type Verdict = 'answered' | 'denied' | 'unknown'

function satisfies(policy: Policy | undefined, user: Caller['user']): boolean {
  if (policy === undefined) return true
  const [isReader, isWriter] = ['read', 'write'].map(scope => user?.scopes?.includes(scope))
  const isStaff = user?.roles?.includes('staff')
  return !!{ anyone: user, reader: isReader, staff: isStaff, chief: isReader && isWriter && isStaff }[policy]
}

function isOffered({ hook }: GeneratedConfig, { user, header }: Caller, { origin }: ItemDraft): boolean {
  if (origin === 'route' || origin === 'runtime') return true
  return { nobody: false, everybody: true, staff: user?.roles?.includes('staff') === true, header }[hook]
}

/** The model: what a caller's request for an item comes to. */
export function verdictFor(config: GeneratedConfig, caller: Caller, item: ItemDraft): Verdict {
  if (!satisfies(config.authorize, caller.user)) return 'denied'
  if (!isOffered(config, caller, item)) return 'unknown'
  return satisfies(item.access, caller.user) && satisfies(item.rule, caller.user) ? 'answered' : 'denied'
}

/** Whether lists contain the item. */
export function isShown(config: GeneratedConfig, caller: Caller, item: ItemDraft): boolean {
  if (!satisfies(config.authorize, caller.user)) return false
  return verdictFor(config, caller, item) === 'answered' || (item.listed && isOffered(config, caller, item))
}

/** Open items of each kind, so that every host has every list. */
export const ALWAYS = { tool: 'common_tool', prompt: 'common_prompt', resource: 'common_resource' } as const
export const uriOf = (word: string) => `${word}://1`

const always = [
  defineTool({ name: ALWAYS.tool, description: 'Reads the common ledger.', handler: () => '' }),
  definePrompt({ name: ALWAYS.prompt, arguments: { topic: { complete: () => [] } }, handler: () => '' }),
  defineResource({ name: ALWAYS.resource, uriTemplate: 'common://{id}', handler: () => '' }),
]

function define({ kind, word, access, listed, answer, task, queued }: ItemDraft): Definition {
  const common = {
    name: word,
    description: `Reads the ${word} ledger.`,
    ...(access !== undefined && { access }),
    ...(listed && { visibility: 'listed' as const }),
  }
  const complete = () => [`a ${word}`]
  if (kind === 'prompt') return definePrompt({ ...common, arguments: { topic: { complete } }, handler: () => word })
  if (kind === 'resource') {
    return defineResource({ ...common, uriTemplate: `${word}://{id}`, complete: { id: complete }, handler: () => word })
  }
  const total = `${word}_total`
  const output: z.ZodType<unknown> = z.object({ [total]: z.object({ [word]: z.number() }) })
  return defineTool({
    ...common,
    input: { type: 'object', properties: { [word]: { type: 'integer' } }, required: [word] } as const,
    ...(answer === 'structured' && { output }),
    ...(task !== undefined && { task }),
    ...(queued && { concurrency: 1 }),
    handler(args) {
      if (answer === 'ToolError') throw new ToolError(`${word} is empty`)
      if (answer === 'throws') throw new Error(SECRET)
      return answer === 'structured' ? { [total]: args, password: SECRET } : `${word}: ${JSON.stringify(args)}`
    },
  })
}

const RULE_PREFIX = { tool: '', prompt: 'prompt:', resource: 'resource:' }
const ruleKey = ({ kind, word }: ItemDraft) => `${RULE_PREFIX[kind]}${word}${kind === 'resource' ? '://*' : ''}`

/** The config of the host, and the definitions to add while the host runs. */
export function hostConfig({
  path,
  authorize,
  onDenied,
  isOpen,
  internal,
  stateless,
  search,
  tasks,
  limits,
  hook,
  items,
}: GeneratedConfig) {
  const made = items.filter(({ word }) => word !== ISOLATED).map(item => ({ item, definition: define(item) }))
  const from = (origin: ItemDraft['origin']) =>
    made.flatMap(({ item, definition }) => (item.origin === origin ? definition : []))
  const rules = Object.fromEntries(items.flatMap(item => (item.rule ? [[ruleKey(item), item.rule] as const] : [])))
  const limited = items.filter(item => item.limited).map(({ word }) => [word, `${LIMIT}/1h`] as const)
  const own = from('session.add')
  const configureSession: NonNullable<Config['configureSession']> = ({ user, headers }, session) => {
    const isStaff = user?.roles.includes('staff') === true
    if (!{ nobody: false, everybody: true, staff: isStaff, header: headers['x-more'] !== undefined }[hook]) return
    session.addToolset('added')
    session.add(...own)
  }
  const route: RouteSettings = {
    toolsets: path === '/mcp' ? 'base' : isOpen ? ':set' : { param: 'set', of: ['base'] },
    ...(path.endsWith('?') && { default: ['base'] }),
    ...(authorize !== undefined && { authorize }),
    stateless,
    ...(search && { search: { pinned: [ALWAYS.tool, '*a*'] } }),
    ...(stateless && { plugins: { 'transport-sse': false as const } }),
  }
  const isolated = items.some(({ word }) => word === ISOLATED) ? [join(import.meta.dirname, 'isolated-tool.ts')] : []
  const unlisted = defineTool({ name: 'never_called', handler: () => '' })
  return {
    config: {
      toolsets: {
        base: [...always, ...from('route'), ...isolated],
        added: { from: [unlisted, ...from('added')], internal },
      },
      routes: { [path]: route },
      plugins: {
        'transport-streamable': {},
        'transport-sse': {},
        bearer: bearerJson(),
        'tool-policy': { policies: POLICIES, rules, onDenied },
        ...(tasks && { tasks: {} }),
        ...(limits && { 'rate-limit': { concurrent: 1, tools: Object.fromEntries(limited) } }),
      },
      configureSession,
    } satisfies Partial<Config>,
    atRuntime: [
      ...from('runtime').map(definition => ({ definition, toolset: 'base' })),
      ...from('runtime, added').map(definition => ({ definition, toolset: 'added' })),
    ],
    path: path === '/mcp' ? '/mcp' : '/mcp/base',
    /** A path that must respond as if the toolset `added` did not exist. */
    hiddenPath: path !== '/mcp' && (internal || !isOpen) ? '/mcp/added' : undefined,
  }
}
