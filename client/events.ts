// Events of `onEvent`: login steps and tolerated deviations. Events contain no tokens, codes, secrets or verifiers.
import { scrubValue } from './errors.ts'

interface EventTable {
  challenge: { status: number; scope?: string | undefined }
  'resource-metadata-found': { url: string; resource: string | undefined }
  /** The challenge's `resource_metadata` has a different origin than the server. */
  'resource-metadata-cross-origin': { url: string }
  'authorization-server-selected': { issuer: string; listed: readonly string[] }
  /** Several servers were listed and `authServerSelector` selected none. */
  'several-authorization-servers': { issuer: string; listed: readonly string[] }
  'authorization-server-found': { issuer: string; url: string | undefined }
  /** An option allows this deviation, such as a trailing slash of the issuer. */
  tolerated: { what: string; option: string }
  registered: { issuer: string; clientId: string }
  'registration-dropped': { issuer: string; clientId: string; why: string }
  'authorization-started': { issuer: string; scope: string | undefined }
  /** The client waits for the login of another process, and then uses its tokens. */
  'login-waiting': { pid: number | undefined }
  /** A delegate returned a bare code, so state and issuer were not checked. */
  'unchecked-response': Record<never, never>
  'token-obtained': { grant: string; scope: string | undefined; expiresIn: number | undefined }
  'token-adopted': { from: 'cache' | 'other-request' }
  'refresh-failed': { code: string; retryable: boolean }
  'token-dropped': { why: string }
  'step-up': { scope: string; attempt: number }
  /** The request body cannot be sent again, so the first response is returned. */
  'retry-skipped': { why: string }
  'storm-breaker-open': { until: number }
  'user-code': { userCode: string; verificationUri: string; expiresIn: number }
}

type AuthEventType = keyof EventTable

/** An event of a login or request, for logs. It contains no secrets. */
export type AuthEvent = {
  [Type in AuthEventType]: { readonly type: Type; readonly key: string } & Readonly<EventTable[Type]>
}[AuthEventType]

export type Emit = <Type extends AuthEventType>(type: Type, details: EventTable[Type]) => void

export function createEmit(
  key: string,
  listener: ((event: AuthEvent) => void) | undefined,
  scrub: (text: string) => string = text => text,
): Emit {
  return (type, details) => {
    try {
      listener?.({ ...(scrubValue(details, scrub) as object), type, key } as unknown as AuthEvent)
    } catch {}
  }
}
