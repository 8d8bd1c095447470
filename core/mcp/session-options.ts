// What `configureSession` works on, and what it chose: kept as a choice, so that a reload can apply it to what the route
// serves by then. For offer.ts.
import type { ToolsetChoice } from './call.ts'
import type { Catalog, CatalogItem } from './catalog.ts'
import type { ServerSettings, SessionOptions } from './configure-session.ts'
import type { Definition } from './define.ts'
import type { ViewRequest } from './view.ts'

/** What `configureSession` chose for a caller, whatever the route serves by now. */
export interface Chosen extends ToolsetChoice, Pick<ViewRequest, 'extra' | 'server' | 'capabilities'> {}

/**
 * What a caller has where the route serves `base`. Of a toolset that is new there nobody knows whether `configureSession`
 * would have left it, unless it leaves all.
 */
export function toolsetsOf(base: readonly string[], { left, added }: ToolsetChoice): string[] {
  const kept = left ? base.filter(name => left.includes(name)) : base
  return [...new Set([...kept, ...added])].sort()
}

interface SessionFacts {
  /** What the route serves. */
  readonly base: readonly string[]
  readonly id: string | undefined
  readonly server: ServerSettings
  readonly catalog: Pick<Catalog, 'has' | 'names' | 'compile'>
  /** Throws where these cannot be served together on the route. */
  check(chosen: Pick<ViewRequest, 'toolsets' | 'extra'>): void
}

/** What `configureSession` works on for one caller, and what it chose once it is over. */
export function createSessionOptions({ base, id, server, catalog, check }: SessionFacts) {
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
      if (!catalog.has(name)) throw new Error(`there is no toolset "${name}"; there are: ${catalog.names().join(', ')}`)
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
    // Undefined where it neither looked at the toolsets nor removed one.
    left: leavesAll ? undefined : [...toolsets],
    added: [...added],
    extra,
    server: options.server,
    capabilities: options.capabilities,
  })
  return { options, chosen }
}
