// What clients are refused: a line in the log for whoever runs the host, where what the client is told says little; and a page
// for people, or JSON for a client that asks for that.
import type Provider from 'oidc-provider'
import type { ProviderContext } from 'oidc-provider'
import type { Logger } from '../../core/index.ts'
import { asText, sendPage } from './bridge.ts'
import type { Pages } from './pages/index.ts'

/** An error of oidc-provider: its message is the code of OAuth. */
interface Refusal extends Error {
  readonly error_description?: string
  /** Not for the client. */
  readonly error_detail?: string
}

/** Characters of a client's id that are logged; anybody may send any. */
const MAX_CLIENT = 200

/** Logs each refusal at the authorization and the token endpoint. */
export function logRefusals(provider: Provider, log: Logger): void {
  const tell =
    (at: string) =>
    ({ oidc }: ProviderContext, { message: error, error_description: text, error_detail: detail }: Refusal) => {
      const client = asText(oidc.params?.['client_id']).slice(0, MAX_CLIENT)
      log.info({ at, client, error, text, detail }, 'refused what a client asked for')
    }
  provider.on('authorization.error', tell('authorization'))
  provider.on('grant.error', tell('token'))
}

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
  sendPage(ctx as never, pages.message(page), status)
}
