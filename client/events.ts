// What the client tells a program that listens (`onEvent`): each step of a login, and every oddity that was tolerated.
// Events carry names and addresses, never tokens, codes, secrets or verifiers.

interface EventTable {
  challenge: { status: number; scope?: string | undefined }
  'resource-metadata-found': { url: string; resource: string | undefined }
  /** The challenge's `resource_metadata` is on another origin than the server. */
  'resource-metadata-cross-origin': { url: string }
  'authorization-server-selected': { issuer: string; listed: readonly string[] }
  /** Several were listed and none was chosen by `authServerSelector`. */
  'several-authorization-servers': { issuer: string; listed: readonly string[] }
  'authorization-server-found': { issuer: string; url: string | undefined }
  /** A deviation that an option allows, such as a trailing slash of the issuer. */
  tolerated: { what: string; option: string }
  registered: { issuer: string; clientId: string }
  'registration-dropped': { issuer: string; clientId: string; why: string }
  'authorization-started': { issuer: string; scope: string | undefined }
  /** A delegate gave a bare code, so state and issuer could not be checked. */
  'unchecked-response': Record<never, never>
  'token-obtained': { grant: string; scope: string | undefined; expiresIn: number | undefined }
  'token-adopted': { from: 'cache' | 'other-request' }
  'refresh-failed': { code: string; retryable: boolean }
  'token-dropped': { why: string }
  'step-up': { scope: string; attempt: number }
  /** The body of a request could not be sent again: its answer is the server's first. */
  'retry-skipped': { why: string }
  'storm-breaker-open': { until: number }
  'user-code': { userCode: string; verificationUri: string; expiresIn: number }
}

export type AuthEventType = keyof EventTable

/** `key` names the token container that it is about. */
export type AuthEvent = {
  [Type in AuthEventType]: { readonly type: Type; readonly key: string } & Readonly<EventTable[Type]>
}[AuthEventType]

type Scrub = (text: string) => string

/** A server's words may carry a secret back: every text of a detail is scrubbed. */
const scrubbed = (detail: object, scrub: Scrub): object =>
  Object.fromEntries(Object.entries(detail).map(([name, value]) => [name, scrubValue(value, scrub)]))

const scrubValue = (value: unknown, scrub: Scrub): unknown => {
  if (typeof value === 'string') return scrub(value)
  return Array.isArray(value) ? value.map(one => scrubValue(one, scrub)) : value
}

export type Emit = <Type extends AuthEventType>(type: Type, detail: EventTable[Type]) => void

export function createEmit(
  key: string,
  listener: ((event: AuthEvent) => void) | undefined,
  scrub: Scrub = text => text,
): Emit {
  return (type, detail) => {
    try {
      listener?.({ ...scrubbed(detail, scrub), type, key } as unknown as AuthEvent)
    } catch {}
  }
}
