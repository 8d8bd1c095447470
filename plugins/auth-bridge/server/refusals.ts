// What clients are refused, in the log: for whoever runs the host, where what a client is told says little.
import type Provider from 'oidc-provider'
import type { errors, KoaContextWithOIDC } from 'oidc-provider'
import type { Logger } from '../../../core/index.ts'

/** Characters of a client id and of a detail in the log. */
const MAX_TEXT = 200

/** The message of the innermost cause, such as why a document of the client was not fetched. Not for the client. */
function causeOf({ cause }: Error): string | undefined {
  let inner = cause
  while (inner instanceof Error && inner.cause instanceof Error) inner = inner.cause
  return inner instanceof Error ? inner.message.slice(0, MAX_TEXT) : undefined
}

/** Logs each refusal at the authorization and the token endpoint. */
export function logRefusals(provider: Provider, log: Logger): void {
  const tell =
    (at: string) =>
    ({ oidc }: KoaContextWithOIDC, refusal: errors.OIDCProviderError) => {
      const { message: error, error_description: text, error_detail: detail = causeOf(refusal) } = refusal
      const id = oidc.params?.['client_id']
      const client = typeof id === 'string' ? id.slice(0, MAX_TEXT) : undefined
      log.info({ at, client, error, text, detail }, 'refused what a client asked for')
    }
  provider.on('authorization.error', tell('authorization'))
  provider.on('grant.error', tell('token'))
}
