// The base URL of an operation: configured, or from the document's servers.
import { isObject } from '../../core/plugin.ts'
import { trimEndOf } from '../families/texts/index.ts'
import { type Api, type Candidate, childOf, readObject, type TrustsUrl } from './api.ts'
import { below, DocumentError, type DocumentFile, type Place, rootPlace } from './document/place.ts'
import type { Found } from './document/references.ts'
import type { Source } from './options.ts'

/** Returns an absolute URL without a trailing slash. Throws a DocumentError. */
export function readBaseUrl(api: Api, candidate: Candidate, source: Source): string {
  if (source.baseUrl !== undefined) return trimEndOf(source.baseUrl, '/')
  const lists = [
    childOf({ value: candidate.operation, place: candidate.place }, 'servers'),
    childOf(candidate.pathItem, 'servers'),
    childOf({ value: api.root, place: api.place }, 'servers'),
  ]
  const list = lists.find(({ value }) => Array.isArray(value) && value.length > 0)
  const main = api.documents.main.url
  if (!list && main.protocol === 'file:') throw new DocumentError(api.place, `has no \`servers\`: ${URL_FIX}`)
  const url = list ? serverUrl(childOf(list, '0'), source) : new URL('/', main)
  const place = list ? below(list.place, 0, 'url') : api.place
  if (!api.trusts(url)) {
    const why = `the server ${url.origin} ${main.protocol === 'file:' ? 'is from an overlay at a URL' : 'has another origin than the document'}`
    throw new DocumentError(place, `${why}: ${URL_FIX}, or list "${url.host}" in \`allowHosts\``)
  }
  return `${url.origin}${trimEndOf(url.pathname, '/')}`
}

/** Creates the check of URLs that receive credentials. Without `origins`, every URL can receive them. */
export const createTrust =
  (origins: ReadonlySet<string> | undefined, { allowHosts = [] }: Source): TrustsUrl =>
  ({ origin, host }) =>
    !origins || origins.has(origin) || allowHosts.includes(host)

/** Returns the origins of the servers and token URLs of a document, before an overlay at a URL changes them. */
export function listOrigins(file: DocumentFile, source: Source): Set<string> {
  const root = { value: file.root, place: rootPlace(file) }
  const items = childrenOf(childOf(root, 'paths'))
  const servers = [root, ...items, ...items.flatMap(childrenOf)].map(holder => childOf(childOf(holder, 'servers'), '0'))
  const schemes = childrenOf(childOf(childOf(root, 'components'), 'securitySchemes'))
  const flows = schemes.flatMap(scheme => childrenOf(childOf(scheme, 'flows')))
  const urls = [
    ...servers.filter(({ value }) => value !== undefined).map(server => tryUrl(() => serverUrl(server, source))),
    ...flows.map(flow => URL.parse(String(childOf(flow, 'tokenUrl').value))),
  ]
  return new Set(urls.flatMap(url => url?.origin ?? []))
}

const childrenOf = (found: Found): Found[] =>
  isObject(found.value) ? Object.keys(found.value).map(key => childOf(found, key)) : []

/** Returns undefined for a fault, which is reported when the server is used. */
function tryUrl(read: () => URL): URL | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

const URL_FIX = 'set `baseUrl`'

function serverUrl(server: Found, source: Source): URL {
  const { url, variables } = readObject(server, 'a server')
  const place = below(server.place, 'url')
  if (typeof url !== 'string') throw new DocumentError(place, 'must be a string')
  const filled = url.replaceAll(/\{([^{}]*)\}/g, (_, name: string) => readVariable(name, variables, place, source))
  const base = server.place.file.url
  const absolute = URL.parse(filled, base.protocol === 'file:' ? undefined : base.href)
  if (!absolute) throw new DocumentError(place, `"${url}" is a relative URL: ${URL_FIX}`)
  if (!/^https?:$/.test(absolute.protocol)) throw new DocumentError(place, `"${url}" is not http or https: ${URL_FIX}`)
  return absolute
}

function readVariable(name: string, variables: unknown, place: Place, { serverVariables = {} }: Source): string {
  const given = Object.hasOwn(serverVariables, name) ? serverVariables[name] : undefined
  const declared = isObject(variables) && isObject(variables[name]) ? variables[name] : {}
  const value = given ?? declared['default']
  if (typeof value !== 'string' && typeof value !== 'number') {
    throw new DocumentError(place, `the variable "${name}" has no value: set it in \`serverVariables\``)
  }
  const allowed = declared['enum']
  if (Array.isArray(allowed) && allowed.length > 0 && !allowed.map(String).includes(`${value}`)) {
    throw new DocumentError(place, `the variable "${name}" cannot be "${value}"; use one of: ${allowed.join(', ')}`)
  }
  return `${value}`
}
