// What the answer to a POST is: messages, a stream of them, a refusal that says something, or one that says nothing.
import { readCue } from '../../client/challenge.ts'
import { AuthError } from '../../client/errors.ts'
import { readBody } from '../../client/http.ts'
import { printable } from '../../client/text.ts'
import { isObject } from '../../core/mcp/is-object.ts'
import { shellWord } from '../shell-word.ts'
import { JSON_TYPE, SSE_TYPE } from './headers.ts'
import { MAX_MESSAGE } from './link.ts'
import { Failure, type Fields, readMessages } from './messages.ts'

const typeOf = ({ headers }: Response) => headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()

export const isStream = (response: Response): boolean => response.ok && typeOf(response) === SSE_TYPE

/** The text of a JSON answer; undefined where it is none. Rejects where it is too large, or breaks off. */
export async function readJson(response: Response): Promise<string | undefined> {
  if (typeOf(response) !== JSON_TYPE) {
    await response.body?.cancel().catch(() => undefined)
    return undefined
  }
  const { bytes, cut } = await readBody(response, MAX_MESSAGE)
  if (cut) throw new Failure('too large', `an answer of the server is larger than ${MAX_MESSAGE} bytes`)
  return new TextDecoder().decode(bytes)
}

/** The error that a refusal carries, if it is one of JSON-RPC. */
export function errorIn(text: string | undefined): Fields | undefined {
  const [message] = text === undefined ? [] : readMessages(text)
  return isObject(message?.['error']) ? (message['error'] as Fields) : undefined
}

/** Codes by which a server of 2026-07-28 is known, whatever its HTTP status. */
const MODERN_CODES: readonly unknown[] = [-32_020, -32_021, -32_022, -32_601]

/** True for a refusal after which an older server is looked for ("Backward Compatibility"). */
export const mayBeOlder = (status: number, text: string | undefined): boolean =>
  status >= 400 &&
  status < 500 &&
  ![401, 403, 408, 429].includes(status) &&
  !MODERN_CODES.includes(errorIn(text)?.['code'])

/** True where the server does not know the session; some servers say so with 400. Nothing of the message was carried out. */
export function isSessionLost(status: number, text: string | undefined): boolean {
  if (status === 404) return errorIn(text)?.['code'] !== -32_601
  return status === 400 && /session|not initialized/i.test(String(errorIn(text)?.['message'] ?? ''))
}

/** A refusal without a word for the client. */
export function refusal(url: string, status: number): Failure {
  const why: Readonly<Record<number, string>> = {
    401: 'asks for a login',
    403: 'does not let this caller do that',
    404: 'serves nothing at this path; check it',
    405: 'is no MCP endpoint of a kind that this client knows; check the path',
    413: 'does not take a message of that size',
    429: 'is asked too often; wait before the next request',
  }
  const said = why[status] ?? (status >= 500 ? 'failed; try again, or see its log' : 'refused the message')
  return new Failure('refused', printable(`${url} ${said} (HTTP ${status})`), {
    status,
    retryable: status >= 500 || status === 429,
  })
}

/** What the client hears of a refusal: the server's own error where it said one. */
export function explainRefusal(url: string, response: Response, text: string | undefined): Failure {
  const { status } = response
  const said = errorIn(text)
  const cue = status === 403 ? readScope(response) : undefined
  if (cue)
    return new Failure(
      'scope needed',
      `${url} wants the scope ${cue} for this; get it with: ${[`mcp-host login ${shellWord(url)}`, ...cue.split(' ').map(shellWord)].join(' --add-scope ')}`,
      { status },
    )
  if (!said || typeof said['message'] !== 'string' || typeof said['code'] !== 'number') return refusal(url, status)
  return Object.assign(
    new Failure('refused', said['message'], { code: said['code'], status }),
    said['data'] === undefined ? {} : { data: said['data'] as Fields },
  )
}

function readScope(response: Response): string | undefined {
  try {
    return readCue(response)?.scope?.join(' ')
  } catch (error) {
    if (AuthError.is(error)) return undefined
    throw error
  }
}
