// What to change where a provider says no: its error, as vendors write it, to a sentence or two for the operator.
import { ENTRA } from './explain-entra.ts'
import type { Explanation, Row } from './explain-row.ts'
import { VENDORS } from './explain-vendors.ts'
import type { ProviderType } from './kinds.ts'

export type { Explanation } from './explain-row.ts'

/** What the provider answered: `error` and `error_description`, as they came. */
export interface ProviderRefusal {
  readonly type: ProviderType
  readonly code?: string | undefined
  readonly description?: string | undefined
}

const ANY: readonly Row[] = [
  {
    code: /^(?!invalid_grant$)/,
    text: /redirect[_ ]uri/i,
    fault: 'misconfigured',
    fix: 'Register the redirect URI of the bridge with the application at the provider, exactly.',
  },
  {
    code: /^redirect_uri_mismatch$/,
    fault: 'misconfigured',
    fix: 'Register the redirect URI of the bridge with the application at the provider, exactly.',
  },
  {
    code: /^invalid_client$/,
    fix: 'Check clientId and clientSecret; if both are right, set authMethod to the other way of showing the secret.',
  },
  {
    code: /^unauthorized_client$/,
    fix: 'Allow the application the grants authorization_code and refresh_token at the provider.',
  },
  {
    code: /^unsupported_grant_type$/,
    fix: 'The provider does not know this grant: set `exchange` to another kind, or to none.',
  },
  { code: /^invalid_scope$/, fix: 'The provider does not give one of these scopes: correct `scopes`.' },
  {
    code: /^invalid_target$/,
    fix: 'The provider does not know the resource or audience that was named: check `parameters` and `scopes`.',
  },
  {
    code: /^invalid_grant$/,
    fix: 'The code or token was used, has ended or was withdrawn: the person must sign in again.',
  },
  {
    code: /^access_denied$/,
    fix: 'The person said no, or may not use the application: see who is assigned to it at the provider.',
  },
  { code: /^(?:consent|interaction|login)_required$/, fix: 'The person must sign in again at the provider.' },
]

const TABLE: readonly Row[] = [...ENTRA, ...VENDORS, ...ANY]

/** What to do about a refusal; undefined where nobody knows. The first row that fits, of the vendor's before all others'. */
export function explain({ type, code = '', description = '' }: ProviderRefusal): Explanation | undefined {
  return TABLE.find(
    row =>
      (row.types?.includes(type) ?? true) && (row.code?.test(code) ?? true) && (row.text?.test(description) ?? true),
  )
}
