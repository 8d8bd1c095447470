// Reads the surface of a host from the views that serve requests.
import { createHash } from 'node:crypto'
import type { Host } from '../../core/host.ts'
import type { AuthorizeRule } from '../../core/kernel/route.ts'
import type { CatalogItem } from '../../core/mcp/definitions/catalog.ts'
import type { ToolDefinition } from '../../core/mcp/definitions/define.ts'
import type { CompiledRoute } from '../../core/mcp/routes/routes.ts'
import type { View } from '../../core/mcp/routes/view.ts'
import { isObject } from '../../core/mcp/wire/message.ts'
import type { JsonObject } from '../../core/mcp/wire/protocol.ts'
import { canonicalJson, withHash } from '../../plugins/families/canonical-json/index.ts'
import { SURFACE_FORMAT, type Surface, type SurfaceItem, type SurfaceList, type SurfaceRoute } from './surface.ts'

const SIGNED_IN = 'a signed-in caller'
const list = (value: string | readonly string[] | undefined) => (value === undefined ? [] : [value].flat())

function serializeRule(rule: AuthorizeRule): string[] {
  if (rule === true) return [SIGNED_IN]
  if (typeof rule === 'string') return [SIGNED_IN, `policy "${rule}"`]
  const scopes = list(rule.scope).map(scope => `scope "${scope}"`)
  return [SIGNED_IN, ...scopes, ...list(rule.role).map(role => `role "${role}"`)]
}

const serializeAccess = (access: string | undefined): string[] =>
  access === undefined ? [] : [SIGNED_IN, `access "${access}"`]

const sorted = (words: readonly string[]) => [...new Set(words)].sort()

/** Returns the wire format without the key's own name. Embedded images are replaced by hashes. */
function serializeShown(wire: object): JsonObject {
  const shown: JsonObject = JSON.parse(JSON.stringify(wire))
  const { icons } = shown
  if (Array.isArray(icons)) shown['icons'] = icons.map(withoutData)
  return canonicalJson(shown)
}

function withoutData(icon: unknown): unknown {
  if (!isObject(icon) || typeof icon['src'] !== 'string' || !icon['src'].startsWith('data:')) return icon
  return { ...icon, src: `data:sha256-${createHash('sha256').update(icon['src']).digest('base64url')}` }
}

const taskOf = ({ task }: ToolDefinition): string | undefined => (typeof task === 'object' ? task.use : task)

function readView({ services, provides }: Host['served'], route: CompiledRoute, view: View): SurfaceRoute {
  const access = services.slot('access', route)
  const { path, authorize, revisions, stateless, listen } = route

  function toItem(item: CatalogItem): SurfaceItem {
    const own = access.needs?.({ item }, route) ?? serializeAccess(item.definition.access)
    const denial = view.denialOf(item)
    // Items of tools, such as app pages, require access to one of the tools.
    const needs = own.length === 0 && denial ? [SIGNED_IN, 'one of the tools that it belongs to'] : own
    const task = item.kind === 'tools' ? taskOf(item.definition) : undefined
    const digests = item.kind === 'tools' ? view.digestsOf(item) : {}
    return withHash({
      needs: sorted(needs),
      ...(denial?.listed && { visibility: 'listed' as const }),
      ...(view.isUnlisted(item) && { unlisted: true as const }),
      ...(task !== undefined && { task }),
      ...(Object.keys(digests).length > 0 && { digests }),
      shown: serializeShown(view.wireOf(item)),
    })
  }
  const listOf = (items: Iterable<CatalogItem>) =>
    Object.fromEntries([...items].map(item => [item.key, toItem(item)] as const))
  const lists: Record<SurfaceList, Record<string, SurfaceItem>> = {
    tools: listOf(view.tools.values()),
    resources: listOf(view.resources.values()),
    resourceTemplates: listOf(view.templates),
    prompts: listOf(view.prompts.values()),
  }
  const needs = authorize === undefined ? [] : (access.needs?.({ rule: authorize }, route) ?? serializeRule(authorize))
  const transports = sorted(provides.by('transport', route))
  const capabilities: JsonObject = JSON.parse(JSON.stringify(view.capabilities))
  const facts = { route: path, needs: sorted(needs), revisions, transports, stateless, listen, capabilities }
  return withHash({ ...facts, ...lists })
}

function listAddresses({ path, choice, toolsets }: CompiledRoute): Array<readonly [string, readonly string[]]> {
  const { parameter, categories, combinations } = choice
  if (parameter === undefined) return [[path, toolsets]]
  const at = (text: string) => {
    const parts = path.split('/').map(part => (part === `:${parameter}` || part === `:${parameter}?` ? text : part))
    return parts.filter((part, index) => index === 0 || part !== '').join('/') || '/'
  }
  const standard = combinations.length > categories.length ? combinations.at(-1) : undefined
  return [
    ...categories.map(name => [at(encodeURIComponent(name)), [name]] as const),
    ...(standard ? [[at(''), standard] as const] : []),
  ]
}

/** Plain version numbers are omitted, because a release without other changes is no change for a model. */
const PLAIN_VERSION = /^[\w.+-]{1,64}$/

export function readSurface(source: Host['served']): Surface {
  const { now } = source.services.offered
  const { version, ...rest } = now.server
  const server = PLAIN_VERSION.test(version) ? rest : now.server
  const addresses = source.routes.flatMap(route =>
    listAddresses(route).map(([address, toolsets]) => ({ address, route, toolsets })),
  )
  const added = source.services
    .unrouted()
    .map(({ name, route }) => ({ address: `${route.path} with ${name}`, route, toolsets: [name] }))
  const routes = [...addresses, ...added].map(({ address, route, toolsets }) => {
    const view = source.services.viewOf(route, toolsets)
    return [address, readView(source, route, view)] as const
  })
  return withHash({
    format: SURFACE_FORMAT,
    server: serializeShown(server),
    atRunTime: now.configureSession ? ['configureSession'] : [],
    routes: Object.fromEntries(routes),
  })
}
