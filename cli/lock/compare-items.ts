// Two versions of a tool, a resource, a family of resources or a prompt: what each difference does to clients and models.
import { isObject } from '../../core/mcp/is-object.ts'
import type { JsonObject } from '../../core/mcp/protocol.ts'
import { compareSchemas } from './compare-schemas.ts'
import { createNameMarks } from './look-alike.ts'
import { newTexts, type PlacedText } from './new-texts.ts'
import type { SurfaceItem, SurfaceList } from './surface.ts'
import { isSame, shown, sidesOf, type Verdict } from './verdict.ts'

/**
 * What a difference does. `breaking`: what worked for a client does not any more. `may-break`: it cannot be judged. `opens`: fewer
 * are refused or asked than before. `read`: models and people read other words. `harmless`: nothing of these.
 */
export const IMPACTS = ['breaking', 'may-break', 'opens', 'read', 'harmless'] as const
export type Impact = (typeof IMPACTS)[number]

/** One difference, of whatever is compared. */
export interface Difference {
  readonly impact: Impact
  readonly what: string
  /** Of words, as they were and are. */
  readonly before?: unknown
  readonly after?: unknown
  /** Of what came in: every text of it. */
  readonly texts?: readonly PlacedText[]
}

export const differs = (impact: Impact, what: string): Difference => ({ impact, what })

/** With the values, where a line cannot show them. */
export const became = (impact: Impact, label: string, before: unknown, after: unknown): Difference => ({
  impact,
  what: `${label}: ${shown(before)} became ${shown(after)}`,
  ...sidesOf(before, after),
})

/** What came in by a name; one that may be taken for another is for people to read. */
export function comesIn(what: string, mark: string, texts: readonly PlacedText[] = []): Difference {
  const said = mark === '' ? differs('harmless', what) : differs('read', `${what}: ${mark}`)
  return texts.length === 0 ? said : { ...said, texts }
}

/** These, and the texts that came in beside them. */
export function withNewTexts(found: readonly Difference[], before: JsonObject, after: JsonObject): Difference[] {
  const texts = newTexts(before, after, found)
  if (texts.length === 0) return [...found]
  const isNames = texts.every(({ text }) => text === undefined)
  return [...found, { ...(isNames ? differs('harmless', 'new names') : differs('read', 'new words')), texts }]
}

/** Of a field that models and people read. */
export const words = (name: string, before: unknown, after: unknown): Difference[] =>
  isSame(before, after) ? [] : [{ impact: 'read', what: `${name} changed`, before, after }]

/** Whether something that was asked is one of the alternatives that are now: such as `(scope "a" or scope "b")`. */
const isAmong = (one: string, need: string) =>
  need.startsWith('(') && ` ${need.slice(1, -1)} `.replaceAll(' or ', '  or  ').includes(` ${one} `)

/** What is asked of callers. */
export function compareNeeds(was: readonly string[], now: readonly string[]): Difference[] {
  const [known, left] = [new Set(was), new Set(now)]
  const added = now.filter(need => !known.has(need))
  const gone = was.filter(need => !left.has(need))
  if (added.length + gone.length === 0) return []
  const list = (said: string, needs: readonly string[]) =>
    needs.length === 0 ? [] : [`${said} ${needs.join(' and ')}`]
  const what = `access: ${[...list('needs', added), ...list('no longer needs', gone)].join('; ')}`
  const widens = (need: string) => gone.some(one => isAmong(one, need))
  if (added.every(widens)) return [differs('opens', what)]
  // Of alternatives the new may be wider than the old.
  return [differs(added.every(need => need.startsWith('(')) && gone.length > 0 ? 'may-break' : 'breaking', what)]
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

function compareSchema(role: 'input' | 'output', before: unknown, after: unknown): Difference[] {
  if (isSame(before, after)) return []
  if (role === 'output' && before === undefined) return [differs('harmless', 'output: a schema says now what it gives')]
  if (role === 'output' && after === undefined)
    return [differs('breaking', 'output: no schema says any more what it gives')]
  if (!isObject(before) || !isObject(after)) return [differs('may-break', `${role}: changed, which is not judged`)]
  const impacts = role === 'input' ? OF_INPUT : OF_OUTPUT
  const found = compareSchemas(before, after)
  if (found.length === 0) return [differs('harmless', `${role}: says the same in another way`)]
  return found.map(({ path, what, verdict, ...sides }) => ({
    ...differs(impacts[verdict], `${role}${path}: ${what}`),
    ...sides,
  }))
}

/** Hints of a tool: what is taken where none is given, and the value with which a client asks its user less. */
const HINTS: Readonly<Record<string, { readonly standard: boolean; readonly trusted: boolean }>> = {
  readOnlyHint: { standard: false, trusted: true },
  destructiveHint: { standard: true, trusted: false },
  idempotentHint: { standard: false, trusted: true },
  openWorldHint: { standard: true, trusted: false },
}

const TAKEN = 'says what is taken where nothing is said'

function compareAnnotations(was: unknown, now: unknown): Difference[] {
  const [before, after] = [was, now].map(value => (isObject(value) ? value : {})) as [JsonObject, JsonObject]
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap(name => {
    const hint = Object.hasOwn(HINTS, name) ? HINTS[name] : undefined
    if (!hint) return words(`annotations.${name}`, before[name], after[name])
    const [one = hint.standard, other = hint.standard] = [before[name], after[name]]
    if (one === other)
      return isSame(before[name], after[name]) ? [] : [differs('harmless', `annotations.${name}: ${TAKEN}`)]
    const what = `annotations.${name}: ${shown(one)} became ${shown(other)}`
    return [differs(other === hint.trusted ? 'opens' : 'breaking', what)]
  })
}

/** What clients load to show who made it: from elsewhere, it tells there who looks. */
export function compareIcons(name: string, before: unknown, after: unknown): Difference[] {
  if (isSame(before, after)) return []
  const sources = (icons: unknown) => (Array.isArray(icons) ? icons.map(icon => isObject(icon) && icon['src']) : [])
  const known = new Set<unknown>(sources(before))
  const impact = sources(after).every(source => known.has(source)) ? 'harmless' : 'read'
  return [{ impact, what: `${name} changed`, before, after }]
}

/** What only shows who made it. */
const compareLooks = (name: string, before: unknown, after: unknown): Difference[] =>
  isSame(before, after) ? [] : [differs('harmless', `${name} changed`)]

/** What nobody here knows the meaning of. */
function compareUnknown(name: string, before: unknown, after: unknown): Difference[] {
  if (isSame(before, after)) return []
  if (before === undefined) return [differs('harmless', `${name}: ${shown(after)} is new`)]
  return [became('may-break', name, before, after)]
}

/** Names and values that a client asks its user less for, or a page may reach. */
function compareAllowed(name: string, was: readonly string[], now: readonly string[]): Difference[] {
  const [known, left] = [new Set(was), new Set(now)]
  const added = now.filter(one => !known.has(one))
  const gone = was.filter(one => !left.has(one))
  return [
    ...added.map(one => differs('opens', `${name}: ${JSON.stringify(one)} is let in now`)),
    ...gone.map(one => differs('may-break', `${name}: ${JSON.stringify(one)} is no longer let in`)),
  ]
}

/** What a page asks for (SEP-1865): where it may connect to, and what of the machine it may use. */
function compareUi(was: unknown, now: unknown): Difference[] {
  const read = (value: unknown): JsonObject => (isObject(value) ? value : {})
  const [before, after] = [read(was), read(now)]
  const texts = (value: unknown) => (Array.isArray(value) ? value.map(String) : [])
  const keysOf = (one: JsonObject, other: JsonObject) => [...new Set([...Object.keys(one), ...Object.keys(other)])]
  return keysOf(before, after).flatMap(key => {
    const [one, other] = [read(before[key]), read(after[key])]
    const name = `_meta.ui.${key}`
    if (key === 'permissions') return compareAllowed(name, Object.keys(one), Object.keys(other))
    if (key !== 'csp') return compareUnknown(name, before[key], after[key])
    return keysOf(one, other).flatMap(list => compareAllowed(`${name}.${list}`, texts(one[list]), texts(other[list])))
  })
}

const compareMeta = (was: unknown, now: unknown): Difference[] => {
  const [before = {}, after = {}] = [was, now]
  if (!isObject(before) || !isObject(after)) return compareUnknown('_meta', was, now)
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  const found = keys.flatMap(key =>
    key === 'ui' ? compareUi(before[key], after[key]) : compareUnknown(`_meta[${shown(key)}]`, before[key], after[key]),
  )
  return found.length > 0 || isSame(was, now) ? found : compareUnknown('_meta', was, now)
}

/** A prompt's arguments, by name. */
function compareArguments(was: unknown, now: unknown): Difference[] {
  const read = (list: unknown) =>
    new Map((Array.isArray(list) ? list : []).filter(isObject).map(one => [String(one['name']), one as JsonObject]))
  const [before, after] = [read(was), read(now)]
  const markOf = createNameMarks([...before.keys(), ...after.keys()])
  return [...new Set([...before.keys(), ...after.keys()])].flatMap(name => {
    const [one, other] = [before.get(name), after.get(name)]
    const label = `argument ${shown(name)}`
    if (!one) {
      return [
        other?.['required'] === true
          ? differs('breaking', `${label}: added`)
          : comesIn(`${label}: added`, markOf(name)),
      ]
    }
    if (!other) return [differs('breaking', `${label}: removed`)]
    const [needed, needs] = [one['required'] === true, other['required'] === true]
    return [
      ...(needed === needs
        ? []
        : [differs(needs ? 'breaking' : 'harmless', `${label}: ${needs ? 'required' : 'optional'} now`)]),
      ...words(`${label}: title`, one['title'], other['title']),
      ...words(`${label}: description`, one['description'], other['description']),
    ]
  })
}

type CompareField = (before: unknown, after: unknown) => Difference[]

const FIELDS: Readonly<Record<string, CompareField>> = {
  title: (before, after) => words('title', before, after),
  description: (before, after) => words('description', before, after),
  inputSchema: (before, after) => compareSchema('input', before, after),
  outputSchema: (before, after) => compareSchema('output', before, after),
  annotations: compareAnnotations,
  arguments: compareArguments,
  icons: (before, after) => compareIcons('icons', before, after),
  size: (before, after) => compareLooks('size', before, after),
  _meta: compareMeta,
}

/** Where the name is not what identifies it. */
const compareName: CompareField = (before, after) => words('name', before, after)

function compareShown(list: SurfaceList, before: JsonObject, after: JsonObject): Difference[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap(name => {
    const compare =
      name === 'name' && list.startsWith('resource') ? compareName : Object.hasOwn(FIELDS, name) && FIELDS[name]
    return compare ? compare(before[name], after[name]) : compareUnknown(name, before[name], after[name])
  })
}

function compareTask(was: string | undefined, now: string | undefined): Difference[] {
  if (was === now) return []
  const what = `task: ${was ?? 'none'} became ${now ?? 'none'}`
  return [differs(now === 'required' || (was !== undefined && now === undefined) ? 'breaking' : 'harmless', what)]
}

/** What a tool's keys bring that lists do not show. */
function compareDigests(was: SurfaceItem['digests'] = {}, now: SurfaceItem['digests'] = {}): Difference[] {
  return [...new Set([...Object.keys(was), ...Object.keys(now)])].flatMap(key =>
    was[key] === now[key] ? [] : [differs('read', `the page of its \`${key}\` changed: look at it`)],
  )
}

function compareUnlisted(was: boolean, now: boolean): Difference[] {
  if (was === now) return []
  return now
    ? [differs('may-break', 'left out of lists: clients find it by a search')]
    : [differs('read', 'lists have it now: every model reads it')]
}

/** How an item differs from what it was. */
export function compareItems(list: SurfaceList, before: SurfaceItem, after: SurfaceItem): Difference[] {
  if (before.hash === after.hash) return []
  const visible = before.visibility === after.visibility ? [] : [visibility(after.visibility === 'listed')]
  const found = [
    ...compareNeeds(before.needs, after.needs),
    ...visible,
    ...compareTask(before.task, after.task),
    ...compareUnlisted(before.unlisted === true, after.unlisted === true),
    ...compareDigests(before.digests, after.digests),
    ...compareShown(list, before.shown, after.shown),
  ]
  return withNewTexts(found.length > 0 ? found : [NOT_JUDGED], before.shown, after.shown)
}

/** Of what only a later version of this program tells apart. */
const NOT_JUDGED = differs('may-break', 'changed, which is not judged')

const visibility = (listed: boolean) =>
  listed
    ? differs('harmless', 'visibility: listed for those who may not use it, too')
    : differs('may-break', 'visibility: no longer listed for those who may not use it')
