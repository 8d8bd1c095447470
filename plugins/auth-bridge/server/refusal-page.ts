// What oidc-provider refuses where there is no client to send it to: a page for people, JSON for a program that asks for that.

import { sendPage } from '../browser/bridge.ts'
import type { Pages } from '../pages/index.ts'
import type { ProviderContext } from './oidc-provider.ts'

type Out = Readonly<Record<string, string | undefined>>

/** What oidc-provider says of an id that it finds nothing under. */
const NO_SUCH_CLIENT = 'client is invalid'
/** What an old registration is met with, once the secret that signed it is gone. */
const UNKNOWN =
  'This service does not know the application that sent you here, or not any more. Remove the server there, add it again, and sign in.'

/** `renderError` of oidc-provider. mcp-remote asks for JSON first, to find out whether it is still registered. */
export const refusalPage = (pages: Pages) => (ctx: ProviderContext, out: Out) => {
  const { status } = ctx
  if (ctx.accepts('html', 'json') === 'json') {
    ctx.set('Cache-Control', 'no-store')
    ctx.body = out
    return
  }
  const text =
    out['error_description'] === NO_SUCH_CLIENT
      ? UNKNOWN
      : (out['error_description'] ?? 'The application sent you here in a way that is not understood.')
  const page = { title: 'This request cannot go on', text, detail: out['error'] ?? '', isError: true }
  sendPage(ctx, pages.message(page), status)
}
