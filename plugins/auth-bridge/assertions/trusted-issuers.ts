// The trusted issuers of identity assertions, with keys that are fetched on demand and cached.
import { isLoopback } from '../../../core/auth.ts'
import type { InternalHost } from '../../../core/internal.ts'
import { StartError } from '../../../core/plugin.ts'
import { createIssuerKeys, type KeySource } from '../../families/issuer-keys/index.ts'
import type { FilledAuthBridge } from '../options.ts'

const MAX_AGE = 600_000
const MAX_STALE = 3_600_000

export interface TrustedIssuer {
  readonly issuer: string
  readonly tenant: string | undefined
  readonly keys: KeySource
}

export type TrustedIssuers = ReadonlyMap<string, TrustedIssuer>

function problemOf(url: string): string | undefined {
  const { protocol, hostname, search } = new URL(url)
  if (protocol === 'http:' && !isLoopback(hostname)) return 'anyone on the network path can replace its keys; use https'
  return search === '' ? undefined : 'an issuer cannot have a query'
}

export function createTrustedIssuers(host: InternalHost, { trustedIssuers }: FilledAuthBridge): TrustedIssuers {
  const { log, report } = host
  const { at } = host.config
  const trusted = new Map<string, TrustedIssuer>()
  for (const [index, { issuer, jwksUri, tenant }] of trustedIssuers.entries()) {
    const refuse = (key: string, why: string) =>
      report(new StartError('MH2101', why, { at: [...at, 'trustedIssuers', index, key] }))
    const problem = problemOf(issuer)
    if (problem !== undefined) refuse('issuer', problem)
    if (jwksUri?.startsWith('http:') && problemOf(jwksUri) !== undefined)
      refuse('jwksUri', 'keys are fetched over plain http: anyone on the network path can replace them; use https')
    if (trusted.has(issuer)) refuse('issuer', 'duplicate issuer')
    const keys = createIssuerKeys({ issuer, jwksUri, maxAge: MAX_AGE, maxStale: MAX_STALE, loose: false, log })
    host.onClose(() => keys.close())
    trusted.set(issuer, { issuer, tenant, keys })
  }
  return trusted
}
