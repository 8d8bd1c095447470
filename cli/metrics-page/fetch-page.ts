// Gets a metrics page of a running host, and says what was found where it is none. No redirect is followed, for a token may
// go along; what is read, and how long, is bounded.
import { printable } from '../../client/printable.ts'
import { errorText, StartError } from '../../core/http/errors.ts'
import { type MetricsPage, parsePage } from './parse-page.ts'

/** Milliseconds until the whole page is there. */
const PATIENCE = 10_000
/** Bytes. */
const MOST_BYTES = 32 * 1024 * 1024

export interface PageAddress {
  readonly url: string
  readonly token: string | undefined
}

/** It answered, and will answer the same again: this address, or this token, must change. Its host may be away for a while else. */
export class NoMetricsError extends StartError {
  /** What it answers. */
  readonly said: string
  /** What to do where it is the page after all. */
  readonly fix: string | undefined

  constructor(said: string, options: { readonly fix?: string | undefined; readonly cause?: unknown } = {}) {
    super(options.fix === undefined ? said : `${said}: ${options.fix}`, { cause: options.cause, exitCode: 2 })
    this.said = said
    this.fix = options.fix
  }
}

/** What an answer that is no metrics page is, and what to do. */
interface Described {
  readonly said: string
  readonly fix?: string
}

async function readText(response: Response): Promise<string> {
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of response.body ?? []) {
    length += piece.length
    if (length > MOST_BYTES) throw new NoMetricsError(`it answers with more than ${MOST_BYTES / 1024 / 1024} MB`)
    pieces.push(Buffer.from(piece))
  }
  return Buffer.concat(pieces).toString()
}

/** A protected MCP endpoint says where it is described (RFC 9728); a metrics page has no such description. */
const isProtectedEndpoint = ({ status, headers }: Response) =>
  status === 401 && /\bresource_metadata=/.test(headers.get('www-authenticate') ?? '')

function describeAnswer(response: Response, text: string, token: string | undefined): Described {
  const { status, headers } = response
  const type = headers.get('content-type')?.split(';', 1)[0] ?? 'no content type'
  if (isProtectedEndpoint(response) || /"jsonrpc"/.test(text) || status === 405 || status === 406) {
    return { said: `it answers ${status} as an MCP endpoint does` }
  }
  if (status === 401 || status === 403) {
    const fix = token === undefined ? 'give --token @file' : 'the token is not one that may read them'
    return { said: `it answers ${status}`, fix }
  }
  if (status >= 300 && status < 400) {
    return { said: `it answers ${status}, and redirects are not followed`, fix: 'give the address itself' }
  }
  return { said: `it answers ${status} with ${printable(type, 80)}, and that is no metrics page` }
}

/** Whether asking again may help: it is away, starting, or draining. */
const isPassing = (status: number) => status >= 500 || status === 429

function reasonOf(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') return `no answer within ${PATIENCE / 1_000} seconds`
  const { cause } = Object(error) as { cause?: unknown }
  return errorText(cause ?? error) || 'no answer'
}

/** Rejects with a StartError: a NoMetricsError where asking again cannot help. `signal` ends it before its time. */
export async function fetchPage({ url, token }: PageAddress, signal?: AbortSignal): Promise<MetricsPage> {
  const patience = AbortSignal.timeout(PATIENCE)
  const failed = (error: unknown) => {
    if (error instanceof StartError) throw error
    throw new StartError(reasonOf(error), { cause: error, exitCode: 1 })
  }
  const headers = { Accept: 'text/plain', ...(token !== undefined && { Authorization: `Bearer ${token}` }) }
  const until = signal ? AbortSignal.any([signal, patience]) : patience
  const response = await fetch(url, { headers, redirect: 'manual', signal: until }).catch(failed)
  const isEventStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
  if (isEventStream) await response.body?.cancel()
  const text = isEventStream ? '' : await readText(response).catch(failed)
  if (isPassing(response.status)) throw new StartError(`it answers ${response.status}`, { exitCode: 1 })
  const page = response.status === 200 ? parsePage(text) : undefined
  if (page && page.samples.size > 0 && page.skipped <= text.length / 1_000) return page
  const { said, fix } = describeAnswer(response, text, token)
  throw new NoMetricsError(said, { fix })
}
