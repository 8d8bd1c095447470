// Makes the client half of the bridge of its options: one identity provider, whatever its kind.
import type { Logger } from '../../../core/index.ts'
import type { FilledProvider } from '../options.ts'
import { type Connection, createConnector } from './connection.ts'
import { exchange } from './exchange.ts'
import { renew } from './renew.ts'
import { revoke } from './revoke.ts'
import { settle } from './settings.ts'
import { begin, finish } from './sign-in.ts'
import type { Upstream } from './upstream.ts'

export { type Explanation, explain, type ProviderRefusal } from './explain.ts'

export interface UpstreamSettings {
  /** The keys of the config that lead to the provider. */
  readonly at: readonly (string | number)[]
  readonly log: Logger
  /** For one request to the provider, in milliseconds. Default 10 s. */
  readonly timeout?: number
}

const NO_REFRESH =
  'without offline_access the provider gives no refresh token: people sign in again when its token ends'

/** Asks nobody yet. Throws a StartError, with its place in the config, where options do not go together. */
export function createUpstream(provider: FilledProvider, { at, log, timeout }: UpstreamSettings): Upstream {
  const settings = settle(provider, at)
  const { scopes, kind, label } = settings
  if (kind.offline === true && scopes && !scopes.includes('offline_access')) log.warn({ scopes }, NO_REFRESH)
  const connect = createConnector(settings, log, timeout)
  const connected =
    <Given extends unknown[], Value>(act: (connection: Connection, ...given: Given) => Promise<Value>) =>
    async (...given: Given): Promise<Value> =>
      act(await connect(), ...given)
  return {
    label,
    begin: connected(begin),
    finish: connected(finish),
    renew: connected(renew),
    exchange: connected(exchange),
    revoke: connected(revoke),
  }
}
