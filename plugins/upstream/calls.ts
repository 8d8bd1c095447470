// Parameters and results of calls at a server.
import { ToolError } from '../../core/index.ts'
import { type Call, isObject } from '../../core/plugin.ts'
import type { Question } from '../../core/transport.ts'
import { type Json, questionOf } from './run.ts'
import type { ServerSettings } from './settings.ts'
import { foreignMeta } from './texts.ts'

type Capabilities = Call['client']['capabilities']

const EVERYTHING: Capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }

/** The capabilities that the server learns of: of the client, without requests that the options switch off. */
export function capabilitiesFor(
  { asks }: Pick<ServerSettings, 'asks'>,
  client: Capabilities = EVERYTHING,
): Capabilities {
  const { elicitation, sampling, roots } = client
  return {
    ...(asks.elicit && elicitation && { elicitation }),
    ...(asks.sample && sampling && { sampling }),
    ...(asks.roots && roots && { roots: {} }),
  }
}

/** The params that the server gets. */
export function paramsFor({ meta }: Pick<ServerSettings, 'meta'>, params: Json, call: Call): Json {
  const _meta = foreignMeta(call.meta, meta)
  return _meta ? { ...params, _meta } : params
}

/** Levels of a result. Deeper ones break clients. */
const MAX_DEPTH = 64

function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) return true
    level = level.flatMap(one => (typeof one === 'object' && one !== null ? Object.values(one) : []))
  }
  return false
}

/** The result without fields of the connection. Throws a ToolError if it is nested too deeply. */
export function foldResult(result: Json, { meta, name }: Pick<ServerSettings, 'meta' | 'name'>): Json {
  if (isTooDeep(result)) throw new ToolError(`The result of the server "${name}" has more than ${MAX_DEPTH} levels.`)
  const { _meta, resultType: _, ttlMs: _ttl, cacheScope: _scope, ...rest } = result
  const own = foreignMeta(_meta, meta)
  return own ? { ...rest, _meta: own } : rest
}

interface Asked {
  readonly requests: Readonly<Record<string, Question>>
  readonly state: unknown
}

/** The requests of an `input_required` result; undefined for another result. Throws a ToolError for invalid requests. */
export function askedOf(result: Json, { name, asks }: Pick<ServerSettings, 'name' | 'asks'>): Asked | undefined {
  if (result['resultType'] !== 'input_required') return undefined
  const { inputRequests, requestState } = result
  const requests = Object.entries(isObject(inputRequests) ? inputRequests : {}).map(([key, request]) => {
    const question = isObject(request) ? questionOf(request['method'], request['params']) : undefined
    const isAllowed = question && asks[ALLOWED_BY[question.method]]
    if (!question || !isAllowed) throw new ToolError(`The server "${name}" sent a request that is not possible here.`)
    return [key, question] as const
  })
  return { requests: Object.fromEntries(requests), state: requestState }
}

const ALLOWED_BY = {
  'elicitation/create': 'elicit',
  'sampling/createMessage': 'sample',
  'roots/list': 'roots',
} as const
