// Requests to the API of the console. A 401 ends the session of the page.
import { signal } from '@preact/signals'
import { type ApiError, SECRET_HEADER } from '../../api.ts'
import { forgetSecret, readSecret } from './secret.ts'
import { visibleText } from './text.ts'

const TIMEOUT = 15_000

/** `unknown` until the first response. */
export const access = signal<'unknown' | 'granted' | 'missing'>('unknown')

export class RequestError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

export const errorText = (error: unknown): string =>
  error instanceof RequestError ? error.message : 'The host did not respond.'

async function failure(response: Response): Promise<RequestError> {
  const body: Partial<ApiError> = await response.json().catch(() => ({}))
  const message = body.message ?? `The host responded with status ${response.status}.`
  return new RequestError(response.status, visibleText(message, 1_000))
}

/** Rejects for a status that is not successful. */
export async function send(path: string, { headers, ...init }: RequestInit): Promise<Response> {
  const secret = readSecret()
  const sent = { [SECRET_HEADER]: secret ?? '1', ...headers }
  const response = await fetch(path, { ...init, headers: sent, credentials: 'same-origin' })
  // Another tab may have logged in since.
  if (response.status === 401 && secret === readSecret()) {
    forgetSecret()
    access.value = 'missing'
  }
  if (!response.ok) throw await failure(response)
  return response
}

export async function request<T>(path: string, init: RequestInit = {}): Promise<T> {
  const response = await send(path, { ...init, signal: AbortSignal.timeout(TIMEOUT) })
  return response.status === 204 ? (undefined as T) : await response.json()
}

export const post = <T>(path: string, body: object): Promise<T> =>
  request<T>(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
