// The argument of `configureSession` and its choice. The choice is kept so that a reload can apply it to the new toolsets of the
// route. For offer.ts.
import type { ToolsetChoice } from './call.ts'
import type { Catalog, CatalogItem } from './catalog.ts'
import type { ServerSettings, SessionOptions } from './configure-session.ts'
import type { Definition } from './define.ts'
import type { ViewRequest } from './view.ts'

/** The choice of `configureSession` for a caller. */
export interface Chosen extends ToolsetChoice, Pick<ViewRequest, 'extra' | 'server' | 'capabilities'> {}

/**
 * The toolsets of a caller if the route serves `base`. A toolset that was added later is included only if `configureSession` left all
 * toolsets.
 */
export function toolsetsOf(base: readonly string[], { left, added }: ToolsetChoice): string[] {
  const kept = left ? base.filter(name => left.includes(name)) : base
  return [...new Set([...kept, ...added])].sort()
}

interface SessionFacts {
  /** The toolsets of the route. */
  readonly base: readonly string[]
  readonly route: string
  readonly id: string | undefined
  readonly server: ServerSettings
  readonly catalog: Pick<Catalog, 'has' | 'names' | 'compile'>
  /** Throws if these cannot be served together on the route. */
  check(chosen: Pick<ViewRequest, 'toolsets' | 'extra'>): void
}

/** The argument of `configureSession` for one caller, and its choice afterwards. */
export function createSessionOptions({ base, route, id, server, catalog, check }: SessionFacts) {
  const toolsets = new Set(base)
  const added = new Set<string>()
  let leavesAll = true
  let extra: readonly CatalogItem[] = []
  const options: SessionOptions = {
    id,
    server,
    capabilities: {},
    get toolsets() {
      leavesAll = false
      return [...toolsets]
    },
    addToolset(name) {
      if (!catalog.has(name)) {
        const known = catalog.names().join(', ')
        throw new Error(`configureSession, route ${route}: there is no toolset "${name}"; there are: ${known}`)
      }
      check({ toolsets: [...new Set([...toolsets, name])], extra })
      toolsets.add(name)
      added.add(name)
    },
    removeToolset(name) {
      leavesAll = false
      toolsets.delete(name)
      added.delete(name)
    },
    add(...definitions: Definition[]) {
      const more = [...extra, ...definitions.map(definition => catalog.compile(definition, 'configureSession'))]
      check({ toolsets: [...toolsets], extra: more })
      extra = more
    },
  }
  const chosen = (): Chosen => ({
    // Undefined if it neither read nor removed toolsets.
    left: leavesAll ? undefined : [...toolsets],
    added: [...added],
    extra,
    server: options.server,
    capabilities: options.capabilities,
  })
  return { options, chosen }
}
