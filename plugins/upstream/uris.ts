// Converts resource URIs between server and route (`uris: wrap`).
import { isObject } from '../../core/plugin.ts'
import type { ServerSettings } from './settings.ts'
import type { Json } from './upstream-request.ts'

type UriSettings = Pick<ServerSettings, 'name' | 'uris'>

/** Clients recognise these schemes, so the toolset name follows them. */
const KEPT_SCHEME = /^(?:ui|skill):\/\//i
/** Clients read these URIs from the web. */
const OF_WEB = /^https?:/i

const wrapIn = ({ name, uris }: UriSettings): string | undefined =>
  uris === 'wrap' ? `${name.toLowerCase()}+` : undefined

/** Returns the URI or URI template that clients use. */
export function routeUri(settings: UriSettings, uri: string): string {
  const wrap = wrapIn(settings)
  if (wrap === undefined || OF_WEB.test(uri)) return uri
  const [scheme = ''] = KEPT_SCHEME.exec(uri) ?? []
  return `${scheme}${wrap}${uri.slice(scheme.length)}`
}

/** Returns the URI at the server. Undefined: the URI belongs to another server. */
export function serverUri(settings: UriSettings, uri: string): string | undefined {
  const wrap = wrapIn(settings)
  if (wrap === undefined || OF_WEB.test(uri)) return uri
  const [scheme = ''] = KEPT_SCHEME.exec(uri) ?? []
  const rest = uri.slice(scheme.length)
  return rest.slice(0, wrap.length).toLowerCase() === wrap ? `${scheme}${rest.slice(wrap.length)}` : undefined
}

/** Changes the member `key` of a value, if it is a URI. */
function wrapUri<Value>(settings: UriSettings, value: Value, key = 'uri'): Value {
  const uri = isObject(value) ? value[key] : undefined
  return typeof uri === 'string' ? { ...value, [key]: routeUri(settings, uri) } : value
}

/** Changes the page URI of a tool (MCP Apps). */
export function wrapMetaUris(settings: UriSettings, meta: Json | undefined): Json | undefined {
  if (settings.uris === 'keep' || !meta) return meta
  const changed = wrapUri(settings, meta, 'ui/resourceUri')
  return isObject(meta['ui']) ? { ...changed, ui: wrapUri(settings, meta['ui'], 'resourceUri') } : changed
}

/** Changes the URI of a link or embedded resource. */
function wrapBlockUri(settings: UriSettings, block: unknown): unknown {
  if (!isObject(block)) return block
  if (block['type'] === 'resource') return { ...block, resource: wrapUri(settings, block['resource']) }
  return block['type'] === 'resource_link' ? wrapUri(settings, block) : block
}

/** Changes the URIs of a result: of links, embedded resources and resource contents. Texts stay unchanged. */
export function wrapResultUris(settings: UriSettings, result: Json): Json {
  if (settings.uris === 'keep') return result
  const { content, contents, messages } = result
  const blocks = (list: readonly unknown[]) => list.map(block => wrapBlockUri(settings, block))
  const wrapMessageUri = (message: unknown) =>
    isObject(message) ? { ...message, content: wrapBlockUri(settings, message['content']) } : message
  return {
    ...result,
    ...(Array.isArray(content) && { content: blocks(content) }),
    ...(Array.isArray(contents) && { contents: contents.map((one: unknown) => wrapUri(settings, one)) }),
    ...(Array.isArray(messages) && { messages: messages.map(wrapMessageUri) }),
  }
}
