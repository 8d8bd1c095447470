// Two surfaces, held against each other: what changed for clients and models, and whether it breaks them.
import { isObject } from '../../core/mcp/is-object.ts'
import { SURFACE_LISTS, type Surface, type SurfaceList, type SurfaceRoute } from '../../core/surface/surface.ts'
import { compareItems, compareNeeds, type Difference, differs, IMPACTS, words } from './compare-items.ts'
import { isSame, shown } from './verdict.ts'

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
  return [
    ...was.filter(name => !now.includes(name)).map(name => differs('breaking', `${of} ${name} is gone`)),
    ...now.filter(name => !was.includes(name)).map(name => differs('harmless', `${of} ${name} is new`)),
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
    return [differs('may-break', `${label}: ${shown(one)} became ${shown(other)}`)]
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
    ...compareDeclared('capability', before.capabilities, after.capabilities),
  ]
}

function compareLists(at: string, before: SurfaceRoute, after: SurfaceRoute): Change[] {
  return SURFACE_LISTS.flatMap(list =>
    keysOf(before[list], after[list]).flatMap(name => {
      const of = { kind: KINDS[list], name }
      const [one, other] = [own(before[list], name), own(after[list], name)]
      if (!one) return [{ at: [at], of, ...differs('harmless', 'added') }]
      if (!other) return [{ at: [at], of, ...differs('breaking', 'removed') }]
      return compareItems(list, one, other).map(difference => ({ at: [at], of, ...difference }))
    }),
  )
}

function compareRoutes(at: string, before: SurfaceRoute | undefined, after: SurfaceRoute | undefined): Change[] {
  if (!before) return [{ at: [at], ...differs('harmless', 'the address is new') }]
  if (!after) return [{ at: [at], ...differs('breaking', 'the address is gone') }]
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
    if (name === 'icons' || name === 'websiteUrl') {
      return isSame(was, now) ? [] : [differs('harmless', `server.${name} changed`)]
    }
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
  const found = new Map<string, Change>()
  for (const { at, ...change } of changes) {
    const key = JSON.stringify(change)
    found.set(key, { ...change, at: [...(found.get(key)?.at ?? []), ...at] })
  }
  return [...found.values()].sort((one, other) => IMPACTS.indexOf(one.impact) - IMPACTS.indexOf(other.impact))
}

/** What differs, the worst first. Empty where the hashes are the same, and nowhere else. */
export function compareSurfaces(before: Surface, after: Surface): Change[] {
  if (before.hash === after.hash) return []
  const ofServer = [...compareServers(before, after), ...compareRunTime(before, after)]
  const found: Change[] = [
    ...ofServer.map(difference => ({ at: [], ...difference })),
    ...keysOf(before.routes, after.routes).flatMap(at =>
      compareRoutes(at, own(before.routes, at), own(after.routes, at)),
    ),
  ]
  return found.length > 0 ? gather(found) : [{ at: [], ...differs('may-break', 'changed, which is not judged') }]
}
