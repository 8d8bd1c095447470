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

export function createTrustedIssuers(host: InternalHost, { trustedIssuers }: FilledAuthBridge): TrustedIssuers {
  const { log, report } = host
  const { at } = host.config
  const trusted = new Map<string, TrustedIssuer>()
  for (const [index, { issuer, jwksUri, tenant }] of trustedIssuers.entries()) {
    const refuse = (key: string, why: string) =>
      report(new StartError('MH2101', why, { at: [...at, 'trustedIssuers', index, key] }))
    for (const [key, url] of Object.entries({ issuer, jwksUri })) {
      if (url?.startsWith('http:') && !isLoopback(new URL(url).hostname))
        refuse(key, 'anyone on the network path can replace the keys; use https')
    }
    if (trusted.has(issuer)) refuse('issuer', 'duplicate issuer')
    const keys = createIssuerKeys({ issuer, jwksUri, maxAge: MAX_AGE, maxStale: MAX_STALE, lenient: false, log })
    host.onClose(() => keys.close())
    trusted.set(issuer, { issuer, tenant, keys })
  }
  return trusted
}
