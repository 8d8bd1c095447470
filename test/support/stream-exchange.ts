// One HTTP exchange on its own connection. The event stream is read event by event, so that a test can stop reading or break the
// connection at an exact point.
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { request as requestSecurely } from 'node:https'
import type { RpcMessage } from './rpc.ts'

export interface ReadEvent {
  readonly id: string | undefined
  readonly event: string | undefined
  readonly retry: number | undefined
  /** Undefined if the event has no data line. */
  readonly data: string | undefined
  /** The data, if it is JSON. */
  readonly message: RpcMessage
}

export interface StreamExchange {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The next event; undefined when the stream has ended or broken. Comments are skipped. */
  next(): Promise<ReadEvent | undefined>
  /** Events up to the first match, inclusive; all events if none matches. */
  until(fits: (event: ReadEvent) => boolean): Promise<ReadEvent[]>
  /** Every event until the end. */
  rest(): Promise<ReadEvent[]>
  /** The body of a response that is not a stream. */
  text(): Promise<string>
  /** Stops reading from the socket, as a hanging process does. */
  pause(): void
  resume(): void
  /** Destroys the socket. */
  drop(): void
  /** Resolves to true when the response ended normally, to false when the connection broke. */
  readonly whole: Promise<boolean>
}

export interface ExchangeRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** The source address. */
  readonly localAddress?: string
}

function parseEvent(text: string): ReadEvent | undefined {
  const fields = new Map(
    text
      .split('\n')
      .filter(line => !line.startsWith(':'))
      .map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
  )
  if (fields.size === 0) return undefined
  const data = fields.get('data')
  const retry = fields.get('retry')
  return {
    id: fields.get('id'),
    event: fields.get('event'),
    retry: retry === undefined ? undefined : Number(retry),
    data,
    message: data?.startsWith('{') ? JSON.parse(data) : undefined,
  }
}

function readFrom(res: IncomingMessage): StreamExchange {
  const events: ReadEvent[] = []
  let text = ''
  let unread = ''
  let over = false
  let wake = () => {}
  const whole = new Promise<boolean>(resolve => {
    const finish = () => {
      over = true
      wake()
      resolve(res.complete)
    }
    res.once('close', finish).on('error', finish)
  })
  res.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    const parts = `${unread}${chunk}`.split('\n\n')
    unread = parts.pop() ?? ''
    events.push(...parts.flatMap(part => parseEvent(part) ?? []))
    wake()
  })

  async function next(): Promise<ReadEvent | undefined> {
    while (events.length === 0 && !over) {
      await new Promise<void>(resolve => {
        wake = resolve
      })
    }
    return events.shift()
  }

  async function until(fits: (event: ReadEvent) => boolean): Promise<ReadEvent[]> {
    const seen: ReadEvent[] = []
    for (let event = await next(); event; event = await next()) {
      seen.push(event)
      if (fits(event)) break
    }
    return seen
  }

  return {
    status: res.statusCode ?? 0,
    headers: res.headers,
    next,
    until,
    rest: () => until(() => false),
    text: async () => {
      await whole
      return text
    },
    pause: () => void res.pause(),
    resume: () => void res.resume(),
    drop: () => void res.socket.destroy(),
    whole,
  }
}

let authority: string | undefined

/** Trusts certificates signed by this CA (PEM) from now on. */
export const trust = (certificate: string) => {
  authority = certificate
}

/** Resolves when the response headers arrive. */
export function exchange(url: string, { method = 'GET', headers, body, localAddress }: ExchangeRequest = {}) {
  return new Promise<StreamExchange>((resolve, reject) => {
    const options = { method, headers: { ...headers }, agent: false, ...(localAddress && { localAddress }) }
    const send = url.startsWith('https:') ? requestSecurely : request
    send(url, { ...options, ...(authority !== undefined && { ca: authority }) }, res => resolve(readFrom(res)))
      .on('error', reject)
      .end(body)
  })
}
