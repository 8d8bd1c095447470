// Accepted tools and prompts of the servers in the lock file, and their comparison with the current ones.
import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { isObject, StartError } from '../../core/plugin.ts'
import { isTooDeep } from '../../remote/index.ts'
import { canonicalJson, hasValidHash, withHash } from '../families/canonical-json/index.ts'
import { visibleText } from '../families/texts/index.ts'
import type { Difference } from '../families/upstream-calls/index.ts'
import type { Item, Snapshot } from './lists.ts'
import { isIncluded, isRestrictionLost, isServed, labelOf } from './names.ts'
import type { ServerSettings } from './settings.ts'

/** Lists whose items are instructions for models. Resources are data, and change. */
export const LISTS = ['tools', 'prompts'] as const
type ListName = (typeof LISTS)[number]

type Filters = Pick<ServerSettings, 'include' | 'exclude' | 'prompts' | 'instructions'>

const acceptedItem = (accepted: LockEntry | undefined, list: ListName, name: string): Item | undefined =>
  accepted && Object.hasOwn(accepted[list], name) ? accepted[list][name] : undefined

const isChosen = (list: ListName, name: unknown, filters: Filters): name is string =>
  typeof name === 'string' && (list === 'tools' ? isIncluded(filters, name) : isServed(filters.prompts, name))

type ItemsByName = Readonly<Record<string, Item>>

/** The entry of a server in the lock file. Items are as the server lists them, by their names at the server. */
export interface LockEntry extends Readonly<Record<ListName, ItemsByName>> {
  readonly hash: string
  /** True if the server supports completion. */
  readonly completions: boolean
  /** Set if the options pass on the instructions of the server. */
  readonly instructions?: string
}

const isLockEntry = (value: unknown): value is LockEntry =>
  isObject(value) &&
  typeof value['completions'] === 'boolean' &&
  ['string', 'undefined'].includes(typeof value['instructions']) &&
  LISTS.every(list => isObject(value[list]) && Object.values(value[list]).every(isObject)) &&
  typeof value['hash'] === 'string' &&
  hasValidHash(value as { hash: string })

const shownInstructions = ({ instructions }: Snapshot, options: Filters): string | undefined =>
  options.instructions === 'append' && instructions !== undefined ? visibleText(instructions) : undefined

/** Returns the entry for the lists of a server, without items that the options exclude. */
export function createLockEntry(snapshot: Snapshot, completions: boolean, filters: Filters): LockEntry {
  const named = (list: ListName) =>
    Object.fromEntries(
      snapshot[list].flatMap(item => (isChosen(list, item['name'], filters) ? [[item['name'], item] as const] : [])),
    )
  const instructions = shownInstructions(snapshot, filters)
  const entry = { completions, tools: named('tools'), prompts: named('prompts') }
  return withHash({ ...entry, ...(instructions !== undefined && { instructions }) })
}

/** Returns the entries of a lock file by server; none without a file. Throws a StartError for invalid entries. */
export function readLockEntries(file: string): ReadonlyMap<string, LockEntry> {
  const error = (what: string, cause?: unknown) =>
    new StartError('MH2947', `${file}: ${what}; delete it and run \`mcp-host accept\``, { cause })
  let lock: unknown
  try {
    lock = JSON.parse(readFileSync(file, 'utf8'))
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return new Map()
    throw error(`cannot be read: ${(cause as Error).message}`, cause)
  }
  const entries = isObject(lock) && lock['upstreams'] !== undefined ? lock['upstreams'] : {}
  if (!isObject(entries)) throw error('`upstreams` is not an object')
  return new Map(
    Object.entries(entries).map(([name, entry]) => {
      if (isLockEntry(entry)) return [name, entry] as const
      throw error(`the entry of the server "${name}" was edited manually or is incomplete`)
    }),
  )
}

/** Returns accepted lists in the form that a server sends. */
export const listsOf = ({ tools, prompts, instructions }: LockEntry): Snapshot => ({
  tools: Object.values(tools),
  prompts: Object.values(prompts),
  resources: [],
  resourceTemplates: [],
  instructions,
})

/** True if the item equals the accepted one. False for values that are too deep to compare. */
function isAsAccepted(item: Item, known: Item): boolean {
  try {
    return isDeepStrictEqual(canonicalJson(item), known)
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}

const changedFields = (item: Item, other: Item) =>
  Object.fromEntries(Object.entries(item).filter(([key, value]) => !isDeepStrictEqual(value, other[key])))

/** Returns the fields that differ. Empty if an item has too many levels. */
function compareFields(item: Item, known: Item | undefined): ReturnType<Difference['sides']> {
  if (isTooDeep(item) || isTooDeep(known)) return {}
  const after = canonicalJson(item)
  return known ? { before: changedFields(known, after), after: changedFields(after, known) } : { after }
}

interface FoundDifference extends Pick<Difference, 'label' | 'kind' | 'sides'> {
  readonly list: ListName | undefined
  /** Undefined for instructions and removed items. */
  readonly item: Item | undefined
}

function findDifferences(snapshot: Snapshot, accepted: LockEntry | undefined, filters: Filters): FoundDifference[] {
  const items = LISTS.flatMap(list => {
    const labelIn = (name: unknown) => labelOf(list.slice(0, -1), name)
    const chosen = snapshot[list].filter(({ name }) => isChosen(list, name, filters))
    const names = new Set(chosen.map(({ name }) => name))
    const removed = Object.keys(accepted?.[list] ?? {}).filter(
      name => isChosen(list, name, filters) && !names.has(name),
    )
    return [
      ...chosen.flatMap((item): FoundDifference[] => {
        const known = acceptedItem(accepted, list, String(item['name']))
        if (known !== undefined && isAsAccepted(item, known)) return []
        const kind = known === undefined ? 'new' : 'changed'
        return [{ label: labelIn(item['name']), kind, list, item, sides: () => compareFields(item, known) }]
      }),
      ...removed.map(name => ({
        label: labelIn(name),
        kind: 'removed' as const,
        list,
        item: undefined,
        sides: () => ({}),
      })),
    ]
  })
  const text = shownInstructions(snapshot, filters)
  const known = filters.instructions === 'append' ? accepted?.instructions : undefined
  if (text === known) return items
  const kind = known === undefined ? 'new' : text === undefined ? 'removed' : 'changed'
  const sides = () => ({ before: known, after: text })
  return [...items, { label: 'instructions', kind, list: undefined, item: undefined, sides }]
}

/** Counts how the current lists differ from the accepted ones. Empty without differences. */
export function describeDifferences(snapshot: Snapshot, accepted: LockEntry, filters: Filters): string {
  const found = findDifferences(snapshot, accepted, filters)
  return (['changed', 'new', 'removed'] as const)
    .flatMap(wanted => {
      const count = found.filter(({ kind }) => kind === wanted).length
      return count === 0 ? [] : `${count} ${wanted}`
    })
    .join(', ')
}

/**
 * Withholds new and changed items, as the options define. `changedTools`: names of withheld tools that were accepted.
 * `withheld`: the reasons by label. `differences` includes served and removed items, but without an entry only withheld items.
 */
export function reviewLists(
  snapshot: Snapshot,
  accepted: LockEntry | undefined,
  settings: Filters & Pick<ServerSettings, 'name' | 'newTools' | 'changed' | 'overrides'>,
) {
  const { changed, newTools } = settings
  const differences = findDifferences(snapshot, accepted, settings)
  const changedItems = new Set(differences.flatMap(({ kind, item }) => (kind === 'changed' ? (item ?? []) : [])))
  // A tool that is withheld because it has changed can be a decoy for a renamed one.
  const servedTools = snapshot.tools.filter(item => changed === 'serve' || !changedItems.has(item))
  const isLost = isRestrictionLost(settings, servedTools)
  const found = differences.map(one => ({
    ...one,
    isWithheld:
      one.kind === 'new'
        ? newTools === 'withhold' || (isLost && one.list === 'tools')
        : one.kind === 'changed' && changed === 'withhold',
  }))
  const toWithhold = found.filter(({ isWithheld }) => isWithheld)
  const withheldItems = new Set(toWithhold.map(({ item }) => item))
  const reasonFor = ({ kind, list }: FoundDifference) => {
    if (kind === 'changed') return 'it has changed since it was accepted:'
    if (!isLost || list !== 'tools') return 'it has not been accepted:'
    return 'it is new, and an override with `access` or `value` matches no tool: correct `overrides` first, then'
  }
  const withheld = new Map(
    toWithhold.map(one => [one.label, `${reasonFor(one)} run \`mcp-host accept ${settings.name}\``] as const),
  )
  const changedTools = toWithhold.flatMap(({ kind, list, item }) =>
    kind === 'changed' && list === 'tools' ? String(item?.['name']) : [],
  )
  const shown: Difference[] = (accepted ? found : toWithhold).map(({ list: _, item: _item, ...one }) => one)
  const served: Snapshot = {
    ...snapshot,
    tools: snapshot.tools.filter(item => !withheldItems.has(item)),
    prompts: snapshot.prompts.filter(item => !withheldItems.has(item)),
    instructions: withheld.has('instructions') ? undefined : shownInstructions(snapshot, settings),
  }
  return { served, changedTools, withheld, differences: shown }
}
