// Sends one HTTP request and reads its response, with limits on time and size.
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate, inflateRaw, type ZlibOptions } from 'node:zlib'
import type { Dispatcher } from 'undici'
import type { Services } from '../../core/internal.ts'

export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>

export interface RequestToSend {
  readonly dispatcher: Dispatcher
  readonly origin: string
  /** The path with the query. */
  readonly path: string
  readonly method: string
  /** Alternating names and values. */
  readonly headers: string[]
  readonly body: string | Buffer | null
}

export interface ReceivedResponse {
  readonly status: number
  readonly headers: ResponseHeaders
  /** The decoded body. */
  readonly body: Buffer
  /** True if the body exceeds the limit. Errors keep the part up to the limit; other responses have an empty body. */
  readonly isCut: boolean
  /** The declared size of a body that exceeds the limit. */
  readonly declaredSize?: number | undefined
}

/** Thrown if there is no usable response. The message contains no request data. */
export class SendFailure extends Error {
  /** The network error, such as `ECONNREFUSED`. */
  readonly code: string | undefined

  constructor(message: string, code?: string) {
    super(message)
    this.code = code
  }
}

/** Maximum bytes to read from an error response. */
const MAX_ERROR_BODY = 65_536
const NO_BYTES = Buffer.alloc(0)

export function headerOf(headers: ResponseHeaders, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value[0] : value
}

interface RawResponse extends ReceivedResponse {
  readonly encoding: string
}

/** Collects one response. It stops reading at the limit. */
class Exchange implements Dispatcher.DispatchHandler, Stoppable {
  readonly #limit: number
  readonly #isHead: boolean
  readonly #resolve: (response: RawResponse) => void
  readonly #reject: (error: Error) => void
  #controller: Dispatcher.DispatchController | undefined
  #stopped: Error | undefined
  #status = 0
  #headers: ResponseHeaders = {}
  #chunks: Buffer[] = []
  #size = 0
  #hasEnded = false
  #most: number

  constructor(
    limit: number,
    isHead: boolean,
    resolve: (response: RawResponse) => void,
    reject: (error: Error) => void,
  ) {
    this.#limit = limit
    this.#most = limit
    this.#isHead = isHead
    this.#resolve = resolve
    this.#reject = reject
  }

  stop(reason: Error) {
    if (this.#hasEnded) return
    this.#stopped = reason
    this.#controller?.abort(reason)
    this.#reject(reason)
  }

  onRequestStart(controller: Dispatcher.DispatchController) {
    this.#controller = controller
    if (this.#stopped) controller.abort(this.#stopped)
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: ResponseHeaders) {
    if (status < 200) return
    this.#status = status
    this.#headers = headers
    this.#most = status >= 400 ? Math.max(MAX_ERROR_BODY, 1) : this.#limit
    const declared = Number(headerOf(headers, 'content-length'))
    if (declared > this.#most && status < 400 && !this.#isHead && status !== 304) this.#finish(true, declared)
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer) {
    if (this.#stopped) return
    this.#size += chunk.length
    if (this.#size <= this.#most) {
      this.#chunks.push(chunk)
      return
    }
    if (this.#status >= 400) this.#chunks.push(chunk.subarray(0, chunk.length - (this.#size - this.#most)))
    else this.#chunks = []
    this.#finish(true)
  }

  onResponseEnd() {
    if (!this.#stopped) this.#finish(false)
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error) {
    if (!this.#stopped) this.#reject(error)
  }

  #finish(isCut: boolean, declaredSize?: number) {
    this.#hasEnded = true
    const [first = NO_BYTES] = this.#chunks
    const body = this.#chunks.length > 1 ? Buffer.concat(this.#chunks) : first
    const encoding = (headerOf(this.#headers, 'content-encoding') ?? '').trim().toLowerCase()
    this.#resolve({ status: this.#status, headers: this.#headers, body, isCut, declaredSize, encoding })
    if (!isCut) return
    this.#stopped = new SendFailure('the response is too large')
    this.#controller?.abort(this.#stopped)
  }
}

type Decode = (bytes: Buffer, options: ZlibOptions) => Promise<Buffer>

const DECODERS: Readonly<Record<string, Decode>> = {
  gzip: promisify(gunzip) as Decode,
  'x-gzip': promisify(gunzip) as Decode,
  br: promisify(brotliDecompress) as Decode,
  // Some servers send raw deflate data, which has no zlib header.
  deflate: (bytes, options) =>
    (promisify(((bytes[0] ?? 0) & 0x0f) === 0x08 ? inflate : inflateRaw) as Decode)(bytes, options),
}

/** Each further encoding multiplies the work for a small response, so only one is accepted. */
async function decode(raw: RawResponse, limit: number): Promise<ReceivedResponse> {
  const { encoding, status, body } = raw
  const decoder = Object.hasOwn(DECODERS, encoding) ? DECODERS[encoding] : undefined
  if (!decoder) throw new SendFailure('the response has an unsupported content encoding')
  // A compressed error that was cut cannot be read.
  if (raw.isCut) return { ...raw, body: NO_BYTES }
  try {
    return { ...raw, body: await decoder(body, { maxOutputLength: status >= 400 ? MAX_ERROR_BODY : limit }) }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ERR_BUFFER_TOO_LARGE') throw new SendFailure('the response cannot be decompressed')
    return { ...raw, body: NO_BYTES, isCut: true, declaredSize: undefined }
  }
}

/** A step that can be stopped. `stop` is ignored after the step has ended. */
export interface Stoppable {
  stop(reason: Error): void
}

/** Stops the steps of a call, one after the other. */
export interface StepLimit {
  /** Replaces the previous step, which has ended. */
  setStep(step: Stoppable): void
}

/** Sends one request with a time limit, through a separate connection. */
export async function sendOnce(
  open: () => ReturnType<Services['openConnections']>,
  { origin, pathname, search }: URL,
  about: Pick<RequestToSend, 'method' | 'headers'> & { readonly timeout: number; readonly maxResponse: number },
): Promise<ReceivedResponse> {
  const { timeout, maxResponse, ...request } = about
  const connections = await open()
  let timer: NodeJS.Timeout | undefined
  const start = (exchange: Stoppable) => {
    timer = setTimeout(() => exchange.stop(new Error(`no response within ${timeout / 1_000} s`)), timeout)
  }
  try {
    const dispatcher = connections.agentFor(origin)
    return await send({ ...request, dispatcher, origin, path: pathname + search, body: null }, maxResponse, {
      setStep: start,
    })
  } finally {
    clearTimeout(timer)
    await connections.close()
  }
}

/** Rejects with a SendFailure, an undici error, or the reason of a stop. `maxResponse`: bytes after decompression. */
export function send(request: RequestToSend, maxResponse: number, limit: StepLimit): Promise<ReceivedResponse> {
  const { dispatcher, origin, path, method, headers, body } = request
  return new Promise((resolve, reject) => {
    const take = (raw: RawResponse) => {
      if (raw.encoding === '' || raw.encoding === 'identity' || raw.body.length === 0) resolve(raw)
      else decode(raw, maxResponse).then(resolve, reject)
    }
    const exchange = new Exchange(maxResponse, method === 'HEAD', take, reject)
    limit.setStep(exchange)
    // The time limit of the call covers both.
    const timeouts = { headersTimeout: 0, bodyTimeout: 0 }
    dispatcher.dispatch({ origin, path, method: method as Dispatcher.HttpMethod, headers, body, ...timeouts }, exchange)
  })
}
