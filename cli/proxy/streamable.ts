// A server over Streamable HTTP: a POST for each line of the client; sessions where the revision has them, and requests that
// name their own revision one by one.
import { explainRefusal, isStream, mayBeOlder, readJson } from './answers.ts'
import { type Exchange, isHarmless } from './exchange.ts'
import { POST_HEADERS, type ToolHeaders } from './headers.ts'
import type { Link } from './link.ts'
import { Failure } from './messages.ts'
import { createOwnExchanges } from './own-exchanges.ts'
import { createSend } from './send.ts'
import { createKeptSession, hasLost, resultIn } from './session.ts'
import { createSessionStreams } from './streams.ts'

/** A server that takes lines of the client. */
export interface Remote {
  /** Resolves when all of it is answered. Rejects with what the client is to be told of what is not. */
  carry(exchange: Exchange): Promise<void>
  /** Ends the session, where there is one. */
  leave(signal: AbortSignal): Promise<void>
}

/** The server does not know the POST: it may be an older one. `refused` is what it said. */
export class MaybeOlder extends Error {
  readonly refused: unknown
  constructor(refused: unknown) {
    super('the server may be an older one')
    this.refused = refused
  }
}

const nothing = (url: string) => new Failure('no answer', `${url} took the request and answered nothing; see its log`)

export function createStreamable(link: Link, tools: ToolHeaders): Remote {
  const { url } = link
  const send = createSend(link)
  const session = createKeptSession(link, send, () => void streams.listen())
  const streams = createSessionStreams(link, send, session)
  const own = createOwnExchanges(link, send, tools)

  /** Hands the answer on, to its end. Undefined where it was; else the refusal, and its text. */
  async function take(response: Response, exchange: Exchange, end: AbortController, heard?: (text: string) => void) {
    if (isStream(response)) {
      await streams.follow(response, exchange, end, heard)
      return undefined
    }
    const text = await readJson(response)
    if (!response.ok) return { status: response.status, text }
    if (text) {
      heard?.(text)
      await link.hear(text)
    }
    if (exchange.open.size > 0 && !exchange.signal.aborted) throw nothing(url)
    return undefined
  }

  const post = (exchange: Exchange, headers: Record<string, string>, end: AbortController) =>
    send({
      method: 'POST',
      headers,
      body: exchange.out.text,
      harmless: isHarmless(exchange),
      signal: AbortSignal.any([exchange.signal, end.signal]),
    })

  async function open(exchange: Exchange): Promise<void> {
    const end = new AbortController()
    const response = await post(exchange, { ...POST_HEADERS }, end)
    const heard = (text: string) => {
      const result = resultIn(text)
      if (result && typeof result['protocolVersion'] === 'string') session.opened(exchange, response, result)
    }
    const refused = await take(response, exchange, end, heard)
    if (!refused) return
    const told = explainRefusal(url, response, refused.text)
    throw mayBeOlder(refused.status, refused.text) ? new MaybeOlder(told) : told
  }

  async function carryInSession(exchange: Exchange): Promise<void> {
    session.remember(exchange)
    for (let attempt = 0; ; attempt++) {
      await session.ready()
      const { epoch, id } = session
      const end = new AbortController()
      const response = await post(exchange, session.headers(), end)
      const refused = await take(response, exchange, end)
      if (!refused) break
      if (attempt > 0 || !hasLost(id, refused.status, refused.text)) throw explainRefusal(url, response, refused.text)
      await session.reopen(epoch)
      // An answer to what the lost session asked: nobody waits for it.
      if (exchange.out.requests.length === 0 && !exchange.out.notification) return
    }
    if (exchange.out.notification?.method !== 'notifications/initialized') return
    void streams.listen()
  }

  return {
    carry(exchange) {
      if (exchange.version !== undefined) return own.carry(exchange)
      return exchange.out.requests[0]?.method === 'initialize' ? open(exchange) : carryInSession(exchange)
    },
    async leave(signal) {
      if (session.id === undefined) return
      const response = await send({ method: 'DELETE', headers: session.headers(), harmless: true, signal, patience: 0 })
      await response.body?.cancel()
    },
  }
}
