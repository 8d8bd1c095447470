// Two surfaces, held against each other: what changed for clients and models, and whether it breaks them.
import { isObject } from '../../core/mcp/is-object.ts'
import {
  became,
  comesIn,
  compareIcons,
  compareItems,
  compareNeeds,
  type Difference,
  differs,
  IMPACTS,
  withNewTexts,
  words,
} from './compare-items.ts'
import { createNameMarks } from './look-alike.ts'
import { textsOf } from './new-texts.ts'
import { SURFACE_LISTS, type Surface, type SurfaceItem, type SurfaceList, type SurfaceRoute } from './surface.ts'
import { isSame } from './verdict.ts'

/** One difference, and where it is. */
export interface Change extends Difference {
  /** The addresses where it is so; empty: everywhere. */
  readonly at: readonly string[]
  /** Of what there; absent: of the address itself. */
  readonly of?: { readonly kind: string; readonly name: string }
}

const KINDS: Readonly<Record<SurfaceList, string>> = {
  tools: 'tool',
  resources: 'resource',
  resourceTemplates: 'resource template',
  prompts: 'prompt',
}

const keysOf = (one: object, other: object) => [...new Set([...Object.keys(one), ...Object.keys(other)])].sort()

const own = <Value>(record: Readonly<Record<string, Value>>, key: string): Value | undefined =>
  Object.hasOwn(record, key) ? record[key] : undefined

/** What is gone from a list breaks whoever uses it; `of` says what it is a list of. */
function compareNames(of: string, was: readonly string[], now: readonly string[]): Difference[] {
  const [known, left] = [new Set(was), new Set(now)]
  return [
    ...was.filter(name => !left.has(name)).map(name => differs('breaking', `${of} ${name} is gone`)),
    ...now.filter(name => !known.has(name)).map(name => differs('harmless', `${of} ${name} is new`)),
  ]
}

/** Capabilities, and extensions: what a server declares no more, clients must not use. */
function compareDeclared(path: string, was: object, now: object): Difference[] {
  return keysOf(was, now).flatMap(name => {
    const [one, other]: [unknown, unknown] = [Reflect.get(was, name), Reflect.get(now, name)]
    const label = `${path} ${name}`
    if (isSame(one, other)) return []
    if (one === undefined) return [differs('harmless', `${label} is new`)]
    if (other === undefined) return [differs('breaking', `${label} is gone`)]
    if (name === 'extensions' && isObject(one) && isObject(other)) return compareDeclared('extension', one, other)
    return [became('may-break', label, one, other)]
  })
}

function compareFacts(before: SurfaceRoute, after: SurfaceRoute): Difference[] {
  const { stateless, listen } = after
  return [
    ...compareNeeds(before.needs, after.needs),
    ...compareNames('revision', before.revisions, after.revisions),
    ...compareNames('transport', before.transports, after.transports),
    ...(before.stateless === stateless
      ? []
      : [
          differs(
            stateless ? 'breaking' : 'may-break',
            stateless ? 'it has no sessions any more' : 'it has sessions now',
          ),
        ]),
    ...(before.listen === listen
      ? []
      : [differs(listen ? 'harmless' : 'breaking', `subscriptions/listen is ${listen ? 'served now' : 'gone'}`)]),
    ...withNewTexts(
      compareDeclared('capability', before.capabilities, after.capabilities),
      before.capabilities,
      after.capabilities,
    ),
  ]
}

const added = (item: SurfaceItem, mark: string): Difference => comesIn('added', mark, textsOf(item.shown))

function compareLists(at: string, before: SurfaceRoute, after: SurfaceRoute): Change[] {
  return SURFACE_LISTS.flatMap(list => {
    const names = keysOf(before[list], after[list])
    const markOf = createNameMarks(names)
    return names.flatMap(name => {
      const of = { kind: KINDS[list], name }
      const [one, other] = [own(before[list], name), own(after[list], name)]
      if (!other) return [{ at: [at], of, ...differs('breaking', 'removed') }]
      if (!one) return [{ at: [at], of, ...added(other, markOf(name)) }]
      return compareItems(list, one, other).map(difference => ({ at: [at], of, ...difference }))
    })
  })
}

/** A new address, and what there was served nowhere before. */
function newRoute(at: string, route: SurfaceRoute, known: ReadonlySet<string>): Change[] {
  const needs = route.needs.length === 0 ? '' : `, and needs ${route.needs.join(' and ')}`
  const found = withNewTexts([differs('harmless', `the address is new${needs}`)], {}, route.capabilities)
  return [
    ...found.map(difference => ({ at: [at], ...difference })),
    ...SURFACE_LISTS.flatMap(list => {
      const markOf = createNameMarks(Object.keys(route[list]))
      return Object.entries(route[list])
        .filter(([, { hash }]) => !known.has(hash))
        .map(([name, item]) => ({ at: [at], of: { kind: KINDS[list], name }, ...added(item, markOf(name)) }))
    }),
  ]
}

const hashesOf = ({ routes }: Surface): ReadonlySet<string> =>
  new Set(
    Object.values(routes).flatMap(route =>
      SURFACE_LISTS.flatMap(list => Object.values(route[list]).map(({ hash }) => hash)),
    ),
  )

function compareRoutes(at: string, before: SurfaceRoute, after: SurfaceRoute): Change[] {
  if (before.hash === after.hash) return []
  const found = [
    ...compareFacts(before, after).map(difference => ({ at: [at], ...difference })),
    ...compareLists(at, before, after),
  ]
  // Such as the pattern that serves an address.
  return found.length > 0 ? found : [{ at: [at], ...differs('harmless', `it is served by ${after.route} now`) }]
}

function compareServers(before: Surface, after: Surface): Difference[] {
  return keysOf(before.server, after.server).flatMap(name => {
    const [was, now] = [before.server[name], after.server[name]]
    if (name === 'icons') return compareIcons('server.icons', was, now)
    return words(`server.${name}`, was, now)
  })
}

const AT_RUN_TIME = (name: string) => `${name} decides at run time what each caller is offered: no lock has that`

function compareRunTime({ atRunTime: was }: Surface, { atRunTime: now }: Surface): Difference[] {
  return [
    ...now.filter(name => !was.includes(name)).map(name => differs('may-break', AT_RUN_TIME(name))),
    ...was.filter(name => !now.includes(name)).map(name => differs('may-break', `there is no ${name} any more`)),
  ]
}

/** Those that are the same but for their address, as one. */
function gather(changes: readonly Change[]): Change[] {
  const found = new Map<string, Change & { readonly at: string[] }>()
  for (const { at, ...change } of changes) {
    const key = JSON.stringify(change)
    const same = found.get(key)
    if (same) same.at.push(...at)
    else found.set(key, { ...change, at: [...at] })
  }
  return [...found.values()].sort((one, other) => IMPACTS.indexOf(one.impact) - IMPACTS.indexOf(other.impact))
}

/** What differs, the worst first. Empty where the hashes are the same, and nowhere else. */
export function compareSurfaces(before: Surface, after: Surface): Change[] {
  if (before.hash === after.hash) return []
  const ofServer = [...compareServers(before, after), ...compareRunTime(before, after)]
  const known = hashesOf(before)
  const found: Change[] = [
    ...ofServer.map(difference => ({ at: [], ...difference })),
    ...keysOf(before.routes, after.routes).flatMap(at => {
      const [was, now] = [own(before.routes, at), own(after.routes, at)]
      if (!now) return [{ at: [at], ...differs('breaking', 'the address is gone') }]
      return was ? compareRoutes(at, was, now) : newRoute(at, now, known)
    }),
  ]
  return found.length > 0 ? gather(found) : [{ at: [], ...differs('may-break', 'changed, which is not judged') }]
}
