// `ctx` inside of a thread: what is data is there at once, and everything else is asked of the host, by message.
import { createCallFetch } from '../mcp/call-fetch.ts'
import type { AskOptions, CallContext, RuntimeHost, RuntimeItems, UpstreamTokenRequest } from '../mcp/define.ts'
import { type ElicitParams, LOG_LEVELS, type LogLevel, type SampleParams } from '../mcp/protocol.ts'
import { crossingFault, MAX_TOLD } from './crossing.ts'
import type { Asked, CallData, Told } from './messages.ts'

/** The way to the host. */
export interface Link {
  readonly signal: AbortSignal
  tell(what: Told, args: readonly unknown[]): void
  /** Typed as what the host answers to each. */
  ask<T>(what: Asked, args: readonly unknown[]): Promise<T>
}

const NO_ITEMS =
  'ctx.host cannot add or remove in a tool with `isolate`: a handler does not cross from one thread to another. ' +
  'Do it in a tool without'

const refused: RuntimeItems<never> = {
  add() {
    throw new Error(NO_ITEMS)
  },
  remove() {
    throw new Error(NO_ITEMS)
  },
}

const runtimeHost = ({ tell, ask }: Link): RuntimeHost => ({
  tools: refused,
  resources: refused,
  prompts: refused,
  resourceUpdated: uri => tell('resourceUpdated', [uri]),
  settled: () => ask('settled', []),
})

/** Throws what `ctx` of the host throws, where the handler can see it. */
function sayLog(link: Link, level: LogLevel, data: unknown, logger: string | undefined) {
  if (!LOG_LEVELS.includes(level)) {
    throw new TypeError(`log level must be one of ${LOG_LEVELS.join(', ')}; was ${level}`)
  }
  const fault = crossingFault(data, MAX_TOLD)
  if (fault !== undefined) throw new TypeError(`what ctx.log sends cannot leave the thread: ${fault}`)
  link.tell('log', [level, data, logger])
}

export function createThreadContext(data: CallData, link: Link): CallContext {
  const { user, session, route, headers, client, meta, fetchTimeout, fetchHeaders } = data
  const { signal, tell, ask } = link
  return {
    user,
    session,
    route,
    headers,
    client,
    meta,
    signal,
    progress(progress: number, total?: number, message?: string) {
      if (!Number.isFinite(progress)) throw new TypeError(`progress must be a finite number, was ${progress}`)
      tell('progress', [progress, total, message])
    },
    log: (level: LogLevel, data: unknown, logger?: string) => sayLog(link, level, data, logger),
    fetch: createCallFetch({ signal: () => signal, timeout: fetchTimeout, headers: () => fetchHeaders }),
    upstreamToken: (request: UpstreamTokenRequest = {}) => ask('upstreamToken', [request]),
    elicit: (params: ElicitParams, options: AskOptions = {}) => ask('elicit', [params, options]),
    sample: (params: SampleParams, options: AskOptions = {}) => ask('sample', [params, options]),
    roots: (options: AskOptions = {}) => ask('roots', [options]),
    ping: () => ask('ping', []),
    disconnect: (retry?: number) => tell('disconnect', [retry]),
    host: runtimeHost(link),
  }
}
