// What the provider said no with, as an UpstreamError: whose fault it is, and words that may stand in a log.
import { isObject } from '../../../core/index.ts'
import { explain } from './explain.ts'
import type { ProviderType } from './kinds.ts'
import { UpstreamError, type UpstreamFault } from './upstream.ts'

const MAX_TEXT = 400

const FAULTS: Readonly<Record<string, UpstreamFault>> = {
  access_denied: 'refused',
  account_selection_required: 'refused',
  bad_refresh_token: 'refused',
  bad_verification_code: 'refused',
  consent_required: 'refused',
  expired_token: 'refused',
  interaction_required: 'refused',
  invalid_grant: 'refused',
  login_required: 'refused',
  unauthorized: 'refused',
  server_error: 'unavailable',
  temporarily_unavailable: 'unavailable',
}

/** What a provider answered where it refused. */
export interface Refusal {
  readonly code: string | undefined
  readonly description: string | undefined
}

const textAt = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

/** The refusal in a body, as RFC 6749, section 5.2 writes it; undefined: it is none. */
export function refusalIn(body: unknown): Refusal | undefined {
  if (!isObject(body)) return undefined
  const code = textAt(body['error'])
  return code === undefined ? undefined : { code, description: textAt(body['error_description']) }
}

/** Without control characters, anything that looks like a token, and these secrets; at most 400 characters. */
export function safeText(text: string, secrets: readonly (string | undefined)[] = []): string {
  let safe = text
  for (const secret of secrets) if (secret !== undefined && secret !== '') safe = safe.replaceAll(secret, '…')
  return safe
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .replaceAll(/[\w~+=-]{40,}/g, '…')
    .slice(0, MAX_TEXT)
}

/** The code, and the provider's words: once, where they begin with the code. Empty where it says nothing. */
export function refusalWords({ code, description }: Refusal, secrets: readonly (string | undefined)[]): string {
  const name = code === undefined ? '' : safeText(code, secrets).slice(0, 100)
  const words = description === undefined ? '' : safeText(description, secrets)
  const isTwice = words.toLowerCase().startsWith(name.toLowerCase())
  return isTwice ? words : [name, words].filter(Boolean).join(': ')
}

export interface RefusalContext {
  readonly type: ProviderType
  /** What was asked, for people: `the token endpoint`. */
  readonly what: string
  /** Never to be shown, should the provider repeat them. */
  readonly secrets: readonly (string | undefined)[]
  /** Where the code is unknown. Default `misconfigured`. */
  readonly otherwise?: UpstreamFault
  /** Other scopes are asked for: `invalid_grant` may then be about them, and not about the person. */
  readonly forScopes?: boolean
}

export function refusalError({ code, description }: Refusal, context: RefusalContext): UpstreamError {
  const { type, what, secrets, otherwise = 'misconfigured', forScopes = false } = context
  const told = explain({ type, code, description })
  const shownCode = code === undefined ? undefined : safeText(code, secrets).slice(0, 100)
  const said = refusalWords({ code, description }, secrets)
  const ended = code === 'invalid_grant' && !forScopes
  const fault = ended ? 'refused' : (told?.fault ?? FAULTS[code ?? ''] ?? otherwise)
  return new UpstreamError(fault, `${what} refused: ${said || 'without a reason'}`, { code: shownCode, fix: told?.fix })
}

/** An answer that is neither what was asked for nor an error that one can read. */
export const unreadable = (what: string, status: number): UpstreamError =>
  new UpstreamError('misconfigured', `${what} answers ${status} and says no reason`, {
    fix: 'check that the issuer or the endpoints are those of the provider, and the client id that of your application',
  })
