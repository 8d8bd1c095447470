// MCP Apps (SEP-1865, io.modelcontextprotocol/ui): tools that say `app` have a page, which clients show to people beside the
// tool's result. It is a resource, `ui://<name>/app.html`, built when the host starts.
import { type CallToolResult, definePlugin } from '../../core/index.ts'
import { createApps } from './apps.ts'
import { type AppsOptions, type FilledAppsOptions, OPTIONS } from './options.ts'
import { MIME_TYPE, toolMeta } from './wire.ts'

export type { AppsOptions } from './options.ts'

const ID = 'io.modelcontextprotocol/ui'

/** Whoever cannot show a page reads the content, also of a tool that left it empty beside its structured content. */
function withText(result: object): object {
  const { content, structuredContent } = result as Partial<CallToolResult>
  if (content?.length !== 0 || structuredContent === undefined) return result
  return { ...result, content: [{ type: 'text', text: JSON.stringify(structuredContent) }] }
}

export const apps = definePlugin<AppsOptions, FilledAppsOptions>({
  provides: ['app'],
  options: OPTIONS,
  setup(host, options) {
    const served = createApps(host, options)
    host.extension(ID, {
      settings: { mimeTypes: [MIME_TYPE] },
      toolKeys: {
        app: {
          around: async (_call, _tool, run) => withText(await run()),
          meta: toolMeta,
          digest: ({ app }) => app && served.digestOf(app),
          resources: ({ app }) => (app ? [served.resourceOf(app)] : []),
        },
      },
    })
    host.serving(services => {
      host.checking(() => served.check(services))
      host.reconfigure<FilledAppsOptions>(next => () => served.renew(services, next))
    })
  },
})
