// Fetches JSON documents of authorization servers with time and size limits and without redirects.
import { attempt } from '../http/describe-thrown.ts'
import { errorText } from '../http/errors.ts'
import { parseJson } from '../http/json-body.ts'
import { redactUrl } from '../http/request-target.ts'

const TIMEOUT = 5_000
const MAX_BYTES = 512 * 1_024

export interface JsonReply {
  readonly status: number
  /** Undefined if the response is not a success, not JSON, or nested too deeply. */
  readonly body: unknown
}

/** Reads a body. Undefined if it has more than `most` bytes after decompression. */
export async function readLimited(response: Response, most: number): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    if (size > most) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const formEncoded = (text: string) => new URLSearchParams({ '': text }).toString().slice(1)

/** Creates the header of `client_secret_basic` (RFC 6749 section 2.3.1). */
export const basicCredentials = (clientId: string, clientSecret: string): string =>
  `Basic ${Buffer.from(`${formEncoded(clientId)}:${formEncoded(clientSecret)}`).toString('base64')}`

/**
 * Fetches a JSON document of at most 512 kB. Rejects without a complete response within 5 s. The message contains the
 * URL without query, and no request data.
 */
export async function fetchJson(url: string, init: RequestInit = {}): Promise<JsonReply> {
  const { signal } = init
  const timeout = AbortSignal.timeout(TIMEOUT)
  try {
    const response = await fetch(url, {
      redirect: 'error',
      ...init,
      headers: { Accept: 'application/json', ...init.headers },
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    })
    if (response.ok) {
      const bytes = await readLimited(response, MAX_BYTES)
      if (!bytes) throw new Error(`it answered more than ${MAX_BYTES} bytes`)
      return { status: response.status, body: attempt(() => parseJson(bytes.toString('utf8'))) }
    }
    await response.body?.cancel()
    return { status: response.status, body: undefined }
  } catch (cause) {
    const reason = cause instanceof Error && cause.cause instanceof Error ? errorText(cause.cause) : errorText(cause)
    throw new Error(`${redactUrl(url)} cannot be read: ${reason.replaceAll(url, redactUrl(url))}`, { cause })
  }
}
