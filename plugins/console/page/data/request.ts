// Requests to the API of the console. A 401 ends the session of the page.
import { signal } from '@preact/signals'
import { visibleText } from './text.ts'

const TIMEOUT = 15_000

/** `unknown` until the first response. */
export const access = signal<'unknown' | 'granted' | 'missing'>('unknown')

export class RequestError extends Error {
  readonly status: number
  readonly code: string | undefined

  constructor(status: number, message: string, code?: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

export const errorText = (error: unknown): string => {
  if (error instanceof RequestError) return error.code === undefined ? error.message : `${error.message} (${error.code})`
  return 'The host did not respond.'
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

const textIn = (value: unknown, name: string): string | undefined =>
  isObject(value) && typeof value[name] === 'string' ? value[name] : undefined

async function failure(response: Response): Promise<RequestError> {
  const body: unknown = await response.json().catch(() => undefined)
  const error = isObject(body) && isObject(body['error']) ? body['error'] : body
  const message = textIn(error, 'message') ?? textIn(body, 'error_description') ?? `The host responded with ${response.status}.`
  return new RequestError(response.status, visibleText(message, 1_000), textIn(error, 'code'))
}

export async function request<T>(path: string, init: RequestInit = {}): Promise<T> {
  const response = await fetch(path, { ...init, credentials: 'same-origin', signal: AbortSignal.timeout(TIMEOUT) })
  if (response.status === 401) access.value = 'missing'
  if (!response.ok) throw await failure(response)
  access.value = 'granted'
  return (await response.json()) as T
}
