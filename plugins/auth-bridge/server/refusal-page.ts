// What oidc-provider refuses where there is no client to send it to: a page for people, JSON for a program that asks for that.
import type { ProviderContext } from 'oidc-provider'
import { sendPage } from '../browser/bridge.ts'
import type { Pages } from '../pages/index.ts'

type Out = Readonly<Record<string, string | undefined>>

/** `renderError` of oidc-provider. mcp-remote asks for JSON first, to find out whether it is still registered. */
export const refusalPage = (pages: Pages) => (ctx: ProviderContext, out: Out) => {
  const { status } = ctx
  if (ctx.accepts('html', 'json') === 'json') {
    ctx.set('Cache-Control', 'no-store')
    ctx.body = out
    return
  }
  const text = out['error_description'] ?? 'The application sent you here in a way that is not understood.'
  const page = { title: 'This request cannot go on', text, detail: out['error'] ?? '', isError: true }
  sendPage(ctx, pages.message(page), status)
}
