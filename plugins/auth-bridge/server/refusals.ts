// What clients are refused, in the log: for whoever runs the host, where what a client is told says little.
import type Provider from 'oidc-provider'
import type { ProviderContext } from 'oidc-provider'
import type { Logger } from '../../../core/index.ts'

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
      const id = oidc.params?.['client_id']
      const client = typeof id === 'string' ? id.slice(0, MAX_CLIENT) : undefined
      log.info({ at, client, error, text, detail }, 'refused what a client asked for')
    }
  provider.on('authorization.error', tell('authorization'))
  provider.on('grant.error', tell('token'))
}
