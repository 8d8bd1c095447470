// Compares two surfaces and rates each difference for clients and models. A field without a rule "may break".
import { isObject } from '../../core/mcp/wire/message.ts'
import type { JsonObject } from '../../core/mcp/wire/protocol.ts'
import {
  compareSchemas,
  createNameMarks,
  isSame,
  listDifference,
  show,
  showBoth,
  unionKeys,
  type Verdict,
} from './compare-schemas.ts'
import { SURFACE_LISTS, type Surface, type SurfaceItem, type SurfaceList, type SurfaceRoute } from './surface.ts'

/**
 * `breaking`: fails for clients. `may-break`: not judged. `opens`: fewer callers are refused or prompted. `read`: models and
 * people read other text. `harmless`: the rest.
 */
export const IMPACTS = ['breaking', 'may-break', 'opens', 'read', 'harmless'] as const
export type Impact = (typeof IMPACTS)[number]

interface Difference {
  readonly impact: Impact
  readonly what: string
  readonly before?: unknown
  readonly after?: unknown
}

export interface Change extends Difference {
  readonly at: readonly string[]
  readonly of?: { readonly kind: string; readonly name: string }
}

const differs = (impact: Impact, what: string, sides: object = {}): Difference => ({ impact, what, ...sides })

const NO_DESCRIPTION = /^[\w$#/.:+-]{0,64}$/

/** True if a value contains new text that a model can interpret as instructions. */
function hasNewText(after: unknown, before: string): boolean {
  if (typeof after === 'string') return !NO_DESCRIPTION.test(after) && !before.includes(JSON.stringify(after))
  if (typeof after !== 'object' || after === null) return false
  return Object.entries(after).some(([name, value]) => hasNewText(name, before) || hasNewText(value, before))
}

const withDescription = (difference: Difference): Difference =>
  difference.impact === 'harmless' && hasNewText(difference.after, JSON.stringify(difference.before) ?? '')
    ? { ...difference, impact: 'read' }
    : difference

type Compare = (before: unknown, after: unknown, name: string) => Difference[]

const compareDescriptions: Compare = (before, after, name) => [differs('read', `${name} changed`, { before, after })]

const compareUnknown: Compare = (before, after, name) =>
  before === undefined
    ? [differs('harmless', `${name} is new`, { after })]
    : [differs('may-break', `${name}: ${show(before)} became ${show(after)}`, showBoth(before, after))]

const compareIcons: Compare = (before, after, name) => [
  differs(Array.isArray(after) && after.length > 0 ? 'read' : 'harmless', `${name} changed`, { before, after }),
]

/** True if an earlier requirement is an alternative in a new one, such as `(scope "a" or scope "b")`. */
const isCovered = (old: string, need: string) =>
  need.startsWith('(') && ` ${need.slice(1, -1)} `.replaceAll(' or ', '  or  ').includes(` ${old} `)

function compareNeeds(was: readonly string[], now: readonly string[]): Difference[] {
  const { removed, added } = listDifference(was, now)
  if (added.length + removed.length === 0) return []
  const list = (label: string, needs: readonly string[]) =>
    needs.length === 0 ? [] : [`${label} ${needs.join(' and ')}`]
  const what = `access: ${[...list('needs', added), ...list('no longer needs', removed)].join('; ')}`
  if (added.every(need => removed.some(old => isCovered(old, need)))) return [differs('opens', what)]
  // New alternatives can admit more or fewer callers.
  return [differs(added.every(need => need.startsWith('(')) && removed.length > 0 ? 'may-break' : 'breaking', what)]
}

const OF_INPUT: Readonly<Record<Verdict, Impact>> = {
  less: 'breaking',
  more: 'harmless',
  other: 'breaking',
  unknown: 'may-break',
  words: 'read',
  same: 'harmless',
}
const OF_OUTPUT: Readonly<Record<Verdict, Impact>> = { ...OF_INPUT, less: 'harmless', more: 'breaking' }

const compareSchema =
  (role: 'input' | 'output'): Compare =>
  (before, after) => {
    if (role === 'output' && before === undefined) return [differs('harmless', 'output: has a schema now', { after })]
    if (role === 'output' && after === undefined) return [differs('breaking', 'output: no longer has a schema')]
    if (!isObject(before) || !isObject(after))
      return [differs('may-break', `${role}: changed, with unknown effect on clients`)]
    const found = compareSchemas(before as JsonObject, after as JsonObject)
    if (found.length === 0) return [differs('harmless', `${role}: an equivalent schema`)]
    const impacts = role === 'input' ? OF_INPUT : OF_OUTPUT
    return found.map(({ path, what, verdict, ...sides }) => differs(impacts[verdict], `${role}${path}: ${what}`, sides))
  }

/** Tool hints: the default, and the value with which clients prompt users less. */
const HINTS: Readonly<Record<string, readonly [standard: boolean, trusted: boolean]>> = {
  readOnlyHint: [false, true],
  destructiveHint: [true, false],
  idempotentHint: [false, true],
  openWorldHint: [true, false],
}

const record = (value: unknown): JsonObject => (isObject(value) ? (value as JsonObject) : {})

function compareEach(was: object, now: object, rule: (key: string) => Compare, nameOf = (key: string) => key) {
  return unionKeys(was, now).flatMap(key => {
    const [before, after]: unknown[] = [was, now].map(one =>
      Object.hasOwn(one, key) ? Reflect.get(one, key) : undefined,
    )
    if (isSame(before, after)) return []
    const found = rule(key)(before, after, nameOf(key))
    return found.length > 0 ? found : compareUnknown(before, after, nameOf(key))
  })
}

/** Compares the members of two objects. */
const each =
  (rule: (key: string) => Compare, nameOf?: (key: string) => string): Compare =>
  (before, after) =>
    compareEach(record(before), record(after), rule, nameOf)

const compareHint: Compare = (before, after, label) => {
  const [standard, trusted] = HINTS[label.slice(label.indexOf('.') + 1)] ?? [false, true]
  const [was, now] = [before ?? standard, after ?? standard]
  if (was === now) return [differs('harmless', `${label}: states the default`)]
  return [differs(now === trusted ? 'opens' : 'breaking', `${label}: ${show(was)} became ${show(now)}`)]
}

const compareAnnotations = each(
  name => (Object.hasOwn(HINTS, name) ? compareHint : compareDescriptions),
  name => `annotations.${name}`,
)

/** True for a list of names, or an object with empty values. */
const isAllowed = (value: unknown) =>
  value === undefined ||
  (Array.isArray(value)
    ? value.every(one => typeof one === 'string')
    : isObject(value) && Object.values(value).every(one => isObject(one) && Object.keys(one).length === 0))

/** Compares names and values that a page is allowed to reach (SEP-1865). */
const compareAllowed: Compare = (before, after, name) => {
  if (!isAllowed(before) || !isAllowed(after)) return compareUnknown(before, after, name)
  const listOf = (value: unknown) => (Array.isArray(value) ? value.map(String) : Object.keys(record(value)))
  const { removed, added } = listDifference(listOf(before), listOf(after))
  return [
    ...added.map(one => differs('opens', `${name}: ${JSON.stringify(one)} is allowed now`)),
    ...removed.map(one => differs('may-break', `${name}: ${JSON.stringify(one)} is no longer allowed`)),
  ]
}

const compareCsp = each(
  () => compareAllowed,
  list => `_meta.ui.csp.${list}`,
)

const compareUi = each(
  key => (key === 'permissions' ? compareAllowed : key === 'csp' ? compareCsp : compareUnknown),
  key => `_meta.ui.${key}`,
)

const compareMeta = each(
  key => (key === 'ui' ? compareUi : compareUnknown),
  key => `_meta[${show(key)}]`,
)

const compareArguments: Compare = (before, after) => {
  const read = (list: unknown) => {
    const named = (Array.isArray(list) ? list : []).filter(isObject).map(one => [`${one['name']}`, one] as const)
    return { byName: Object.fromEntries(named), isUnique: new Set(named.map(([name]) => name)).size === named.length }
  }
  const [{ byName: was, isUnique: wasUnique }, { byName: now, isUnique }] = [read(before), read(after)]
  if (!wasUnique || !isUnique) return compareUnknown(before, after, 'arguments')
  const markOf = createNameMarks(unionKeys(was, now))
  const compareOne: Compare = (old, other, name) => {
    const label = `argument ${show(name)}`
    if (other === undefined) return [differs('breaking', `${label}: removed`)]
    const [needed, needs] = [record(old)['required'] === true, record(other)['required'] === true]
    if (old === undefined) return [addition(label, needs ? 'breaking' : 'harmless', markOf(name), other)]
    const required = { ...record(old), required: needed }
    return compareEach(
      required,
      { ...record(other), required: needs },
      key =>
        key === 'required'
          ? () => [differs(needs ? 'breaking' : 'harmless', `${label}: ${needs ? 'required' : 'optional'} now`)]
          : compareDescriptions,
      key => `${label}: ${key}`,
    )
  }
  return compareEach(was, now, () => compareOne)
}

/** Describes a new item with all its values. */
function addition(label: string, impact: Impact, mark: string, value: unknown): Difference {
  const { name: _, ...after } = record(value)
  const what = [label === '' ? 'added' : `${label}: added`, ...(mark === '' ? [] : [mark])].join(': ')
  const sides = Object.keys(after).length > 0 ? { after } : {}
  return differs(mark !== '' && impact === 'harmless' ? 'read' : impact, what, sides)
}

const FIELDS: Readonly<Record<string, Compare>> = {
  title: compareDescriptions,
  description: compareDescriptions,
  inputSchema: compareSchema('input'),
  outputSchema: compareSchema('output'),
  annotations: compareAnnotations,
  arguments: compareArguments,
  icons: compareIcons,
  size: () => [differs('harmless', 'size changed')],
  _meta: compareMeta,
}

const CHANGED = differs('may-break', 'changed, with unknown effect on clients')

const ruleOf = (list: SurfaceList) => (name: string) =>
  name === 'name' && list.startsWith('resource')
    ? compareDescriptions
    : ((Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined) ?? compareUnknown)

function compareItems(list: SurfaceList, before: SurfaceItem, after: SurfaceItem): Difference[] {
  if (before.hash === after.hash) return []
  const { task: wasTask, digests: wasDigests = {} } = before
  const { task, digests = {} } = after
  const found = [
    ...compareNeeds(before.needs, after.needs),
    ...compareFlag(before.visibility === 'listed', after.visibility === 'listed', [
      differs('harmless', 'now also listed for callers without access'),
      differs('may-break', 'no longer listed for callers without access'),
    ]),
    ...(wasTask === task ? [] : [compareTask(wasTask, task)]),
    ...compareFlag(before.unlisted === true, after.unlisted === true, [
      differs('may-break', 'not in lists: clients find it by search'),
      differs('read', 'in lists now: every model reads it'),
    ]),
    ...compareEach(wasDigests, digests, key => () => [
      differs('read', `the page of its \`${key}\` changed: review it`),
    ]),
    ...compareEach(before.shown, after.shown, ruleOf(list)),
  ]
  return (found.length > 0 ? found : [CHANGED]).map(withDescription)
}

const compareTask = (was = 'none', now = 'none'): Difference =>
  differs(now === 'required' || now === 'none' ? 'breaking' : 'harmless', `task: ${was} became ${now}`)

const compareFlag = (was: boolean, now: boolean, [on, off]: readonly [Difference, Difference]): Difference[] =>
  was === now ? [] : [now ? on : off]

const KINDS: Readonly<Record<SurfaceList, string>> = {
  tools: 'tool',
  resources: 'resource',
  resourceTemplates: 'resource template',
  prompts: 'prompt',
}

function compareNames(label: string, was: readonly string[], now: readonly string[]): Difference[] {
  const { removed, added } = listDifference(was, now)
  return [
    ...removed.map(name => differs('breaking', `${label} ${name} is gone`)),
    ...added.map(name => differs('harmless', `${label} ${name} is new`)),
  ]
}

const compareDeclared: Compare = (before, after, label) => {
  if (before === undefined) return [differs('harmless', `${label} is new`, { after })]
  if (after === undefined) return [differs('breaking', `${label} is gone`)]
  const isList = label === 'capability extensions' && isObject(before) && isObject(after)
  return (isList ? compareExtensions : compareUnknown)(before, after, label)
}

const compareExtensions = each(
  () => compareDeclared,
  name => `extension ${name}`,
)

const compareCapabilities = each(
  () => compareDeclared,
  name => `capability ${name}`,
)

const compareFacts = (before: SurfaceRoute, after: SurfaceRoute): Difference[] => [
  ...compareNeeds(before.needs, after.needs),
  ...compareNames('revision', before.revisions, after.revisions),
  ...compareNames('transport', before.transports, after.transports),
  ...compareFlag(before.stateless, after.stateless, [
    differs('breaking', 'it no longer has sessions'),
    differs('may-break', 'it has sessions now'),
  ]),
  ...compareFlag(before.listen, after.listen, [
    differs('harmless', 'subscriptions/listen is served now'),
    differs('breaking', 'subscriptions/listen is no longer served'),
  ]),
  ...compareCapabilities(before.capabilities, after.capabilities, '').map(withDescription),
]

type Lists = Pick<SurfaceRoute, SurfaceList>

export function compareLists(
  at: string,
  before: Partial<Lists>,
  after: Lists,
  known: ReadonlySet<string> = new Set(),
): Change[] {
  return SURFACE_LISTS.flatMap(list => {
    const { [list]: was = {} } = before
    const markOf = createNameMarks(unionKeys(was, after[list]))
    const compareOne = (one: SurfaceItem | undefined, other: SurfaceItem | undefined, name: string) => {
      if (!other) return [differs('breaking', 'removed')]
      if (one) return compareItems(list, one, other)
      return known.has(other.hash) ? [] : [addition('', 'harmless', markOf(name), other.shown)]
    }
    return unionKeys(was, after[list])
      .sort()
      .flatMap(name => {
        const [one, other] = [was, after[list]].map(items => (Object.hasOwn(items, name) ? items[name] : undefined))
        return compareOne(one, other, name).map(found => ({ at: [at], of: { kind: KINDS[list], name }, ...found }))
      })
  })
}

function addedRoute(at: string, route: SurfaceRoute, known: ReadonlySet<string>): Change[] {
  const needs = route.needs.length === 0 ? '' : `, and needs ${route.needs.join(' and ')}`
  const { capabilities: after } = route
  return [
    { at: [at], ...withDescription(differs('harmless', `the path is new${needs}`, { after })) },
    ...compareLists(at, {}, route, known),
  ]
}

function compareRoutes(at: string, before: SurfaceRoute, after: SurfaceRoute): Change[] {
  if (before.hash === after.hash) return []
  const found = [
    ...compareFacts(before, after).map(difference => ({ at: [at], ...difference })),
    ...compareLists(at, before, after),
  ]
  return found.length > 0 ? found : [{ at: [at], ...differs('harmless', `it is served by ${after.route} now`) }]
}

const compareServer = (name: string) => (name === 'icons' ? compareIcons : compareDescriptions)

function compareRunTime({ atRunTime: was }: Surface, { atRunTime: now }: Surface): Difference[] {
  const { removed, added } = listDifference(was, now)
  const decides = 'decides at run time what each caller is offered: the lock file does not contain this'
  return [
    ...added.map(name => differs('may-break', `${name} ${decides}`)),
    ...removed.map(name => differs('may-break', `${name} was removed`)),
  ]
}

function groupChanges(changes: readonly Change[]): Change[] {
  const found = new Map<string, Change & { readonly at: string[] }>()
  for (const { at, ...change } of changes) {
    const key = JSON.stringify(change)
    const same = found.get(key)
    if (same) same.at.push(...at)
    else found.set(key, { ...change, at: [...at] })
  }
  return [...found.values()].sort((one, other) => IMPACTS.indexOf(one.impact) - IMPACTS.indexOf(other.impact))
}

/** Returns all differences, the worst first. Empty only if the hashes are equal. */
export function compareSurfaces(before: Surface, after: Surface): Change[] {
  if (before.hash === after.hash) return []
  const known = new Set(
    Object.values(before.routes).flatMap(route =>
      SURFACE_LISTS.flatMap(list => Object.values(route[list]).map(({ hash }) => hash)),
    ),
  )
  const server = compareEach(before.server, after.server, compareServer, name => `server.${name}`)
  const found: Change[] = [
    ...[...server, ...compareRunTime(before, after)].map(difference => ({ at: [], ...difference })),
    ...unionKeys(before.routes, after.routes)
      .sort()
      .flatMap(at => {
        const [was, now] = [before, after].map(({ routes }) => (Object.hasOwn(routes, at) ? routes[at] : undefined))
        if (!now) return [{ at: [at], ...differs('breaking', 'the path was removed') }]
        return was ? compareRoutes(at, was, now) : addedRoute(at, now, known)
      }),
  ]
  return found.length > 0 ? groupChanges(found) : [{ at: [], ...CHANGED }]
}
