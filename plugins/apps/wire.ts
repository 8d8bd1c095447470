// Wire format of apps: `_meta` of tools, and resources.
import { defineResource, type Meta, type ResourceDefinition, type ToolDefinition } from '../../core/index.ts'
import { isObject } from '../../core/plugin.ts'
import type { AppDefinition } from './define-app.ts'

export const MIME_TYPE = 'text/html;profile=mcp-app'

/** The URI is stable across reloads, because clients keep it in conversations. */
export const uriOf = ({ name }: AppDefinition): string => `ui://${name}/app.html`

/** Adds to the author's `_meta`. The flat key is for clients older than 2026. */
export function toolMeta({ app, _meta }: ToolDefinition): Meta {
  if (!app) return {}
  const own = _meta?.['ui']
  const resourceUri = uriOf(app)
  return { ui: { ...(isObject(own) && own), resourceUri }, 'ui/resourceUri': resourceUri }
}

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

/** Returns `_meta` of the resource and its contents; undefined if empty. */
function pageMeta({ csp, permissions, domain, prefersBorder }: AppDefinition): Meta | undefined {
  const ui = Object.entries({ csp, permissions, domain, prefersBorder }).filter(([, value]) => value !== undefined)
  return ui.length === 0 ? undefined : { ui: Object.fromEntries(ui) }
}

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
