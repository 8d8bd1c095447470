// A transport that is not HTTP: serves clients in the host's own process, over a pair of ends, each as one session of the
// revisions that begin with `initialize`. docs/plugins.md, "For transports", goes through it.
import { HostError, type User } from 'mcp-host'
import { definePlugin, type McpRoute } from 'mcp-host/plugin'
import {
  createLineReply,
  demandBatches,
  encodeError,
  HANDSHAKE_REVISIONS,
  type RequestId,
  readMessages,
  receiveMessage,
  type Session,
  serveRequests,
  type Transport,
  transportOf,
  type ValidMessage,
  validBatch,
} from 'mcp-host/transport'
import { createPair, type End } from './pair.ts'

/** Who is at the other end. The program that connects says so: nothing here finds out who calls. */
export interface Who {
  readonly user?: User
  /** The values of the route's parameters. */
  readonly params?: Readonly<Record<string, string>>
}

/** Serves one end, until either side closes it. */
function serveEnd(host: Transport, route: McpRoute, end: End, { user, params = {} }: Who): void {
  const sender = { headers: {}, user }
  let session: Session | undefined
  let closed = false

  function refuse(thrown: unknown, id?: RequestId) {
    const known = HostError.is(thrown)
    if (!known) host.log.error({ err: thrown, route: route.path }, 'a message failed')
    end.send(encodeError(known ? thrown : new HostError('internal'), { id, revision: session?.revision }))
  }

  function leave(opened: Session) {
    // Its calls are aborted with this reason, and `runSession` may clean up.
    const ended = host.sessions.end(opened, new Error('the client closed its end'))
    ended.catch(err => host.log.warn({ err }, 'a session could not be ended everywhere'))
  }

  async function open(): Promise<Session> {
    const signal = () => new AbortController().signal
    // It asks the route's `authorize`: nobody here came through `authorize`.
    const opened = await host.sessions.open({ route, params, user, headers: {}, ip: 'memory', signal }, host.name)
    // In use for as long as the client is there, so that it is not swept as idle.
    opened.use()
    opened.connect({
      send: message => end.send(message),
      // With `retry` the host drains and clients may come back. This one cannot, and answers still come this way.
      close: retry => {
        if (retry === undefined) end.close()
      },
    })
    // The client may have left while `configureSession` took its time.
    if (closed) leave(opened)
    return opened
  }

  async function take(message: ValidMessage): Promise<void> {
    if (!session) {
      if (message.kind !== 'request') return
      if (message.method !== 'initialize') throw new HostError('invalidRequest', { detail: 'initialize comes first' })
      session = await open()
    }
    if (message.kind !== 'request') return receiveMessage(session, message)
    // Not waited for: a cancellation, or the answer to its question, must get past it.
    void serveRequests(host, session, [message], sender, () => createLineReply(end))
  }

  async function read(text: string): Promise<void> {
    let id: RequestId | undefined
    try {
      const found = readMessages(text)
      if ('kind' in found && found.kind === 'invalid') return refuse(found.error, found.id)
      if (!('kind' in found)) demandBatches(session?.revision)
      // The requests of a batch are answered one by one, as each is ready.
      for (const message of 'kind' in found ? [found] : validBatch(found)) {
        id = message.kind === 'request' ? message.id : undefined
        await take(message)
      }
    } catch (thrown) {
      refuse(thrown, id)
    }
  }

  const callOff = host.watchCaller({ route, params, user }, () => end.close())
  let last = Promise.resolve()
  end.onmessage = text => {
    last = last.then(() => read(text))
  }
  end.onclose = () => {
    closed = true
    callOff()
    if (session && !session.disposed) leave(session)
  }
}

/** A plugin for one host, and the way to what it serves once the host has started. */
export function createInMemoryTransport() {
  const served = new Map<string, (who: Who) => End>()
  const plugin = definePlugin<Record<never, never>>({
    options: { type: 'object', additionalProperties: false, properties: {} },
    setup(host) {
      host.revisions(({ stateless }) => (stateless ? [] : HANDSHAKE_REVISIONS))
      host.serving(services => {
        const transport = transportOf(host, services)
        for (const route of host.routes.filter(({ stateless }) => !stateless)) {
          served.set(route.path, who => {
            // Whoever may not enter hears of it here, not first with `initialize`.
            services.admit({ route, params: who.params ?? {}, user: who.user })
            const [client, server] = createPair()
            serveEnd(transport, route, server, who)
            return client
          })
        }
      })
    },
  })
  return {
    plugin,
    /** The client's end. Throws a HostError, `unauthorized` or `forbidden`, as the route's `authorize` does. */
    connect(path: string, who: Who = {}): End {
      const connectTo = served.get(path)
      if (connectTo) return connectTo(who)
      throw new Error(`no sessions are served at ${path}; there are: ${[...served.keys()].join(', ')}`)
    },
  }
}
