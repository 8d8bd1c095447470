// The plugin `apps` (MCP Apps, SEP-1865): serves the pages of tools with `app` as resources `ui://<name>/app.html`.
import type { CallToolResult } from '../../core/index.ts'
import { definePlugin } from '../../core/internal.ts'
import { APP_SCHEMA } from './app-schema.ts'
import { createApps, MIME_TYPE, toolMeta } from './apps.ts'
import type { AppDefinition } from './define-app.ts'
import { type AppsOptions, type FilledAppsOptions, OPTIONS } from './options.ts'

export type { AppDefinition } from './define-app.ts'
export type { AppsOptions } from './options.ts'

const ID = 'io.modelcontextprotocol/ui'

/** Adds structured content as text for clients without support for pages. */
function withText(result: object): object {
  const { content, structuredContent } = result as Partial<CallToolResult>
  if (content?.length !== 0 || structuredContent === undefined) return result
  return { ...result, content: [{ type: 'text', text: JSON.stringify(structuredContent) }] }
}

export const apps = definePlugin<AppsOptions, FilledAppsOptions>({
  provides: ['app'],
  options: OPTIONS,
  toolKeys: { app: APP_SCHEMA },
  setup(host, options) {
    const served = createApps(host, options)
    host.extension(ID, { settings: { mimeTypes: [MIME_TYPE] } })
    host.toolKey<AppDefinition>('app', {
      onCall: async (_call, _app, run) => withText(await run()),
      meta: (_app, tool) => toolMeta(tool),
      digest: served.digestOf,
      resources: app => [served.resourceOf(app)],
    })
    host.onReady(served.check)
    host.onReload<FilledAppsOptions>(next => () => served.renew(next))
  },
})
