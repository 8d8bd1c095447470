// Parameters and results of calls at a server.
import { ToolError } from '../../core/index.ts'
import { type Call, isObject } from '../../core/plugin.ts'
import { type InputRequest, REQUEST_NAMES } from '../../core/transport.ts'
import { isTooDeep, MAX_LEVELS } from '../../remote/index.ts'
import { visibleLine } from '../families/texts/index.ts'
import { MAY_BE_EXECUTED, UI } from './failures.ts'
import { passedMeta } from './metadata.ts'
import type { ServerSettings } from './settings.ts'
import { type Json, readInputRequest } from './upstream-request.ts'
import { wrapResultUris } from './uris.ts'

type Capabilities = Call['client']['capabilities']

const UI_CAPABILITY: Capabilities = { extensions: { [UI]: { mimeTypes: ['text/html;profile=mcp-app'] } } }
const EVERYTHING: Capabilities = {
  elicitation: { form: {}, url: {} },
  sampling: {},
  roots: {},
  ...UI_CAPABILITY,
}

/** Returns the client's capabilities, without requests that the options disable, and without other extensions. */
export function capabilitiesFor(
  { asks }: Pick<ServerSettings, 'asks'>,
  client: Capabilities = EVERYTHING,
): Capabilities {
  const { elicitation, sampling, roots, extensions } = client
  const ui: unknown = isObject(extensions) && Object.hasOwn(extensions, UI) ? extensions[UI] : undefined
  // Assignments give all calls the same hidden class. Conditional spreads do not.
  const passed: Capabilities = {}
  if (isObject(ui)) passed.extensions = { [UI]: ui }
  if (asks.elicit && elicitation) passed.elicitation = elicitation
  if (asks.sample && sampling) passed.sampling = sampling
  if (asks.roots && roots) passed.roots = {}
  return passed
}

/**
 * Capabilities of the list connection: some servers hide tools whose requests or page the client does not support. A
 * shared connection accepts no server requests.
 */
export const listCapabilities = (settings: Pick<ServerSettings, 'asks' | 'sessions'>): Capabilities =>
  settings.sessions === 'shared' ? UI_CAPABILITY : capabilitiesFor(settings)

/** Returns the params for the server. */
export function paramsFor({ meta }: Pick<ServerSettings, 'meta'>, params: Json, call: Call): Json {
  const _meta = passedMeta(call.meta, meta)
  return _meta ? { ...params, _meta } : params
}

/** Maximum characters of a result type in an error. */
const MAX_TYPE = 100

/** Removes fields of the connection from a result, and changes its URIs. Throws a ToolError for unknown types and too many levels. */
export function cleanResult(result: Json, settings: Pick<ServerSettings, 'meta' | 'name' | 'uris'>): Json {
  const { meta, name } = settings
  const { resultType = 'complete' } = result
  if (resultType !== 'complete') {
    const type = visibleLine(typeof resultType === 'string' ? resultType : typeof resultType).slice(0, MAX_TYPE)
    throw new ToolError(`The server "${name}" sent a result of the unsupported type "${type}". ${MAY_BE_EXECUTED}`)
  }
  if (isTooDeep(result)) throw new ToolError(`The result of the server "${name}" has more than ${MAX_LEVELS} levels.`)
  const { _meta, resultType: _, ttlMs: _ttl, cacheScope: _scope, ...rest } = wrapResultUris(settings, result)
  const own = passedMeta(_meta, meta)
  return own ? { ...rest, _meta: own } : rest
}

interface InputRequests {
  readonly requests: Readonly<Record<string, InputRequest>>
  readonly state: unknown
}

/** Reads the requests of an `input_required` result; undefined for other results. Throws a ToolError for invalid requests. */
export function readInputRequests(
  result: Json,
  { name, asks }: Pick<ServerSettings, 'name' | 'asks'>,
): InputRequests | undefined {
  if (result['resultType'] !== 'input_required') return undefined
  const { inputRequests, requestState } = result
  const requests = Object.entries(isObject(inputRequests) ? inputRequests : {}).map(([key, request]) => {
    const input = isObject(request) ? readInputRequest(request['method'], request['params']) : undefined
    const isAllowed = input && asks[REQUEST_NAMES[input.method]]
    if (!input || !isAllowed)
      throw new ToolError(`The server "${name}" sent a request that this host does not support or allow.`)
    return [key, input] as const
  })
  return { requests: Object.fromEntries(requests), state: requestState }
}
