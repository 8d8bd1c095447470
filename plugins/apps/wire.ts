// What clients are told of apps: in the `_meta` of tools, and as the contents of a resource.
import {
  type AppDefinition,
  defineResource,
  isObject,
  type Meta,
  type ResourceDefinition,
  type ToolDefinition,
} from '../../core/index.ts'

export const MIME_TYPE = 'text/html;profile=mcp-app'

/** The same whatever the page says: clients keep it in conversations, and come back with it after a reload. */
export const uriOf = ({ name }: AppDefinition): string => `ui://${name}/app.html`

/** Beside what the author says there, such as `visibility`. The flat key is that of clients from before 2026. */
export function toolMeta({ app, _meta }: ToolDefinition): Meta {
  if (!app) return {}
  const own = _meta?.['ui']
  const resourceUri = uriOf(app)
  return { ui: { ...(isObject(own) && own), resourceUri }, 'ui/resourceUri': resourceUri }
}

/** What is wrong with what a tool says of itself in `_meta.ui`; undefined: nothing. */
export function uiFault({ _meta }: ToolDefinition): string | undefined {
  const ui = _meta?.['ui']
  if (ui === undefined) return undefined
  if (!isObject(ui)) return '`_meta.ui` takes an object, such as { visibility: ["app"] }'
  const { visibility } = ui
  if (visibility === undefined) return undefined
  const isSound = Array.isArray(visibility) && visibility.length > 0 && visibility.every(who => WHO.has(who))
  return isSound ? undefined : '`_meta.ui.visibility` takes a list of "model" and "app", one of them at least'
}

const WHO: ReadonlySet<unknown> = new Set(['model', 'app'])

/** `_meta` of the resource, and of its contents; undefined where the app wants nothing. */
function pageMeta({ csp, permissions, domain, prefersBorder }: AppDefinition): Meta | undefined {
  const ui = Object.entries({ csp, permissions, domain, prefersBorder }).filter(([, value]) => value !== undefined)
  return ui.length === 0 ? undefined : { ui: Object.fromEntries(ui) }
}

/** The resource of an app, whose page `read` gives. */
export function resourceFor(app: AppDefinition, read: () => Promise<string>): ResourceDefinition {
  const { name, title, description, icons } = app
  const _meta = pageMeta(app)
  const meta = _meta && { _meta }
  return defineResource({
    name,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(icons && { icons }),
    uri: uriOf(app),
    mimeType: MIME_TYPE,
    ...meta,
    handler: async () => ({ mimeType: MIME_TYPE, text: await read(), ...meta }),
  })
}
