// What a provider's page says that is no answer to an application: the words by which vendors name a mistake of its set-up.
import type { ProviderRefusal } from '../upstream/explain.ts'

interface Signal {
  readonly pattern: RegExp
  /** As the token endpoint would have said it; undefined: the first group of the pattern. */
  readonly code?: string
  /** So plain that it counts on a page of success, too, which may be a login page with any words in its scripts. */
  readonly anywhere?: true
}

const SIGNALS: readonly Signal[] = [
  { pattern: /\bAADSTS\d{4,7}\b[^<"\\]{0,200}/, code: '', anywhere: true },
  {
    pattern: /\b(redirect_uri_mismatch|deleted_client|disabled_client|org_internal|admin_policy_enforced)\b/,
    anywhere: true,
  },
  { pattern: /Invalid parameter: redirect_uri/i, code: 'invalid_request', anywhere: true },
  { pattern: /Callback URL mismatch[^<"\\]{0,200}/i, code: 'invalid_request', anywhere: true },
  { pattern: /redirect_uri is not associated with this application/i, code: 'redirect_uri_mismatch', anywhere: true },
  { pattern: /'redirect_uri' parameter must be[^<"\\]{0,200}/i, code: 'invalid_request', anywhere: true },
  { pattern: /Realm does not exist/i, code: '' },
  { pattern: /(?:Client not found|Client disabled|Unknown client)[^<"\\]{0,100}/i, code: 'invalid_client' },
  { pattern: /\binvalid_redirect_uri\b[^<"\\]{0,200}/, code: 'redirect_uri_mismatch' },
  {
    pattern:
      /\b(invalid_client|unauthorized_client|invalid_scope|invalid_target|unsupported_response_type)\b[^<"\\]{0,200}/,
  },
  { pattern: /\bredirect[_ ]ur[il]\b[^<"\\]{0,200}/i, code: 'invalid_request' },
  { pattern: /\b(invalid_request|access_denied)\b[^<"\\]{0,200}/ },
]

const ENTITIES: Readonly<Record<string, string>> = { quot: '"', amp: '&', lt: '<', gt: '>', apos: "'" }

const unescapeHtml = (html: string): string =>
  html
    .replaceAll(/&#(\d{1,6});/g, (_, code) => String.fromCodePoint(Math.min(Number(code), 0xffff)))
    .replaceAll(/&#x([0-9a-f]{1,5});/gi, (_, code) => String.fromCodePoint(Math.min(Number.parseInt(code, 16), 0xffff)))
    .replaceAll(/&(quot|amp|lt|gt|apos);/g, (_, name) => ENTITIES[name] ?? '')

/** What a page says no with; undefined where it says nothing that is known. `isError`: it came with a status of an error. */
export function refusalOnPage(html: string, isError: boolean): Omit<ProviderRefusal, 'type'> | undefined {
  const text = unescapeHtml(html)
  for (const { pattern, code, anywhere } of SIGNALS) {
    const found = isError || anywhere ? pattern.exec(text) : null
    if (found) return { code: code ?? found[1], description: found[0].replaceAll(/\s+/g, ' ').trim() }
  }
  return undefined
}

/** The same of where a browser is sent that is not the application: Google tells there, in base64. */
export function refusalInAddress(url: URL): Omit<ProviderRefusal, 'type'> | undefined {
  const told = [...url.searchParams].map(([name, value]) =>
    name === 'authError' ? Buffer.from(value, 'base64').toString('latin1') : `${name}=${value}`,
  )
  return refusalOnPage(told.join(' '), false)
}
