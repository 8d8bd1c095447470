// A `fetch` that connects only to allowed addresses, with redirects under the same rules.

import { lookup as systemLookup } from 'node:dns'
import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { kindOfAddress } from '../addresses.ts'
import { AuthError } from '../errors.ts'
import { allowedHosts } from '../net-policy.ts'

/** After a protocol upgrade without a listener, Node.js emits only `close`. */
export const receiveResponse = (request: ClientRequest, body?: string | Uint8Array): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    request
      .once('response', resolve)
      .on('error', reject)
      .once('close', () => reject(new Error('the connection was closed without a response')))
      .end(body)
  })

export interface GuardedFetchOptions {
  /** Hosts with no address restrictions, as in `networkPolicy.allowHosts`. */
  readonly allowHosts?: readonly string[]
  /** Resolves names. Default: `dns.lookup`. The checked result is used to connect. */
  readonly lookup?: LookupFunction
}

const MAX_REDIRECTS = 20
const NO_BODY = new Set([101, 103, 204, 205, 304])
const REDIRECTS = new Set([301, 302, 303, 307, 308])
const CROSS_ORIGIN_SECRETS = ['authorization', 'cookie', 'proxy-authorization', 'dpop']

const isBlocked = (address: string): boolean => isIP(address) === 0 || kindOfAddress(address) !== 'public'

const refusal = (host: string, address: string): AuthError =>
  new AuthError(`${host} is at ${address}, inside a network where this client may not be sent`, {
    code: 'blocked_address',
    fix: `if that is meant, list "${host}" in allowHosts of createGuardedFetch`,
  })

const notFound = (host: string) => Object.assign(new Error(`${host} has no address`), { code: 'ENOTFOUND' })

/** Rejects if any resolved address is blocked. */
function guardLookup(lookup: LookupFunction, isRefused: (address: string) => boolean): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, options, (error, found, family) => {
      const addresses = Array.isArray(found) ? found.map(({ address }) => address) : [found]
      const refused = error ? undefined : addresses.find(isRefused)
      if (refused !== undefined) callback(refusal(hostname, refused), [], 0)
      // node:net throws an uncaught exception for an empty list.
      else if (!error && addresses.length === 0) callback(notFound(hostname), [], 0)
      else callback(error, found, family)
    })
  }
}

function decoded(message: IncomingMessage): Readable {
  const encoding = message.headers['content-encoding']?.trim().toLowerCase()
  const decoders: Record<string, () => ReturnType<typeof createGunzip>> = {
    gzip: createGunzip,
    'x-gzip': createGunzip,
    deflate: createInflate,
    br: createBrotliDecompress,
  }
  const decoder = encoding && Object.hasOwn(decoders, encoding) ? decoders[encoding]?.() : undefined
  if (!decoder) return message
  pipeline(message, decoder).catch(() => {})
  return decoder
}

function headersOf(message: IncomingMessage): Headers {
  const headers = new Headers()
  for (let at = 0; at + 1 < message.rawHeaders.length; at += 2) {
    headers.append(message.rawHeaders[at] ?? '', message.rawHeaders[at + 1] ?? '')
  }
  return headers
}

function bodyOf(message: IncomingMessage, method: string): ReadableStream<Uint8Array> | null {
  const { statusCode = 0 } = message
  if (method !== 'HEAD' && !NO_BODY.has(statusCode)) {
    return Readable.toWeb(decoded(message)) as ReadableStream<Uint8Array>
  }
  // The HTTP parser reads a body for 205, which can be endless.
  if (statusCode === 205) message.destroy()
  else message.resume()
  return null
}

function toResponse(message: IncomingMessage, url: URL, method: string, redirected: boolean): Response {
  const { statusCode: status = 0, statusMessage: statusText = '' } = message
  try {
    const response = new Response(bodyOf(message, method), { status, statusText, headers: headersOf(message) })
    return Object.defineProperties(response, {
      url: { value: url.href },
      redirected: { value: redirected },
      type: { value: 'basic' },
    })
  } catch (thrown) {
    message.destroy()
    throw thrown
  }
}

interface Outgoing {
  readonly url: URL
  readonly method: string
  readonly headers: Headers
  readonly body: Uint8Array | undefined
}

/** Redirect rules of Fetch §4.4. */
function nextOf({ url, method, headers, body }: Outgoing, status: number, location: string): Outgoing {
  const next = new URL(location, url)
  const kept = new Headers(headers)
  if (next.origin !== url.origin) for (const name of CROSS_ORIGIN_SECRETS) kept.delete(name)
  const becomesGet = status === 303 ? method !== 'HEAD' : status < 303 && method === 'POST'
  if (!becomesGet) return { url: next, method, headers: kept, body }
  for (const name of ['content-type', 'content-length', 'content-encoding', 'content-language']) kept.delete(name)
  return { url: next, method: 'GET', headers: kept, body: undefined }
}

const failed = (why: string, cause?: unknown) => new TypeError(why, { cause })

/**
 * Creates a `fetch` that connects only to public addresses; others reject with `blocked_address`. Request bodies are
 * buffered, cookies ignored. Use it as `fetch` with `networkPolicy: { blockPrivateNetworks: true }`.
 */
export function createGuardedFetch({ allowHosts = [], lookup }: GuardedFetchOptions = {}): typeof fetch {
  const isAllowed = allowedHosts(allowHosts)
  const resolveName = lookup ?? (systemLookup as LookupFunction)
  const guarded = guardLookup(resolveName, isBlocked)
  const unguarded = guardLookup(resolveName, () => false)
  const agents = { 'http:': new HttpAgent({ keepAlive: true }), 'https:': new HttpsAgent({ keepAlive: true }) }

  function connect({ url, method, headers }: Outgoing, signal: AbortSignal | undefined): ClientRequest {
    const free = isAllowed(url)
    const literal = url.hostname.replace(/^\[|\]$/g, '')
    if (!free && isIP(literal) !== 0 && isBlocked(literal)) throw refusal(url.host, literal)
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw failed(`${url.protocol} is not http or https`)
    const start = url.protocol === 'https:' ? httpsRequest : httpRequest
    return start(url, {
      method,
      headers: Object.fromEntries(headers),
      agent: agents[url.protocol],
      lookup: free ? unguarded : guarded,
      ...(signal && { signal }),
    })
  }

  async function follow(
    first: Outgoing,
    mode: Request['redirect'],
    signal: AbortSignal | undefined,
  ): Promise<Response> {
    let outgoing = first
    for (let hops = 0; ; hops++) {
      const message = await receiveResponse(connect(outgoing, signal), outgoing.body)
      const { statusCode = 0, headers } = message
      if (mode === 'manual' || !REDIRECTS.has(statusCode) || headers.location === undefined) {
        return toResponse(message, outgoing.url, outgoing.method, hops > 0)
      }
      message.destroy()
      if (mode === 'error') throw failed('unexpected redirect')
      if (hops === MAX_REDIRECTS) throw failed('redirect count exceeded')
      outgoing = nextOf(outgoing, statusCode, headers.location)
    }
  }

  return async (input, init) => {
    const asked = new Request(input, init)
    // The signal of `asked` can be garbage-collected.
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined)
    const headers = new Headers(asked.headers)
    if (!headers.has('accept')) headers.set('accept', '*/*')
    const body = asked.body === null ? undefined : new Uint8Array(await asked.arrayBuffer())
    try {
      signal?.throwIfAborted()
      return await follow({ url: new URL(asked.url), method: asked.method, headers, body }, asked.redirect, signal)
    } catch (thrown) {
      if (signal?.aborted) throw signal.reason
      throw AuthError.is(thrown) ? thrown : failed('fetch failed', thrown)
    }
  }
}
