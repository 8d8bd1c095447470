// The base URL of an operation: configured, or from the document's servers.
import { isObject } from '../../core/plugin.ts'
import { trimEndOf } from '../families/texts/index.ts'
import { type Api, type Candidate, childOf, objectAt, type Trusts } from './api.ts'
import { below, DocumentError, type DocumentFile, type Place, rootOf } from './document/place.ts'
import type { Found } from './document/references.ts'
import type { Source } from './options.ts'

/** Returns an absolute URL without a trailing slash. Throws a DocumentError. */
export function baseUrlOf(api: Api, candidate: Candidate, source: Source): string {
  if (source.baseUrl !== undefined) return trimEndOf(source.baseUrl, '/')
  const lists = [
    childOf({ value: candidate.operation, place: candidate.place }, 'servers'),
    childOf(candidate.pathItem, 'servers'),
    childOf({ value: api.root, place: api.place }, 'servers'),
  ]
  const list = lists.find(({ value }) => Array.isArray(value) && value.length > 0)
  const main = api.documents.main.url
  if (!list && main.protocol === 'file:') throw new DocumentError(api.place, `has no \`servers\`: ${SET_IT}`)
  const url = list ? serverUrl(childOf(list, '0'), source) : new URL('/', main)
  const place = list ? below(list.place, 0, 'url') : api.place
  if (!api.trusts(url)) {
    const why = `the server ${url.origin} ${main.protocol === 'file:' ? 'is of an overlay at a URL' : 'has another origin than the document'}`
    throw new DocumentError(place, `${why}: ${SET_IT}, or list "${url.host}" in \`allowHosts\``)
  }
  return `${url.origin}${trimEndOf(url.pathname, '/')}`
}

/** Creates the check of URLs that receive credentials. Without `origins`, every URL can receive them. */
export const createTrust =
  (origins: ReadonlySet<string> | undefined, { allowHosts = [] }: Source): Trusts =>
  ({ origin, host }) =>
    !origins || origins.has(origin) || allowHosts.includes(host)

/** Returns the origins of the servers and token URLs of a document, before an overlay at a URL changes them. */
export function originsIn(file: DocumentFile, source: Source): Set<string> {
  const root = { value: file.root, place: rootOf(file) }
  const items = childrenOf(childOf(root, 'paths'))
  const servers = [root, ...items, ...items.flatMap(childrenOf)].map(holder => childOf(childOf(holder, 'servers'), '0'))
  const schemes = childrenOf(childOf(childOf(root, 'components'), 'securitySchemes'))
  const flows = schemes.flatMap(scheme => childrenOf(childOf(scheme, 'flows')))
  const urls = [
    ...servers.filter(({ value }) => value !== undefined).map(server => urlOrNone(() => serverUrl(server, source))),
    ...flows.map(flow => URL.parse(String(childOf(flow, 'tokenUrl').value))),
  ]
  return new Set(urls.flatMap(url => url?.origin ?? []))
}

const childrenOf = (found: Found): Found[] =>
  isObject(found.value) ? Object.keys(found.value).map(key => childOf(found, key)) : []

/** Returns undefined for a fault, which is reported when the server is used. */
function urlOrNone(read: () => URL): URL | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

const SET_IT = 'set `baseUrl`'

function serverUrl(server: Found, source: Source): URL {
  const { url, variables } = objectAt(server, 'a server')
  const place = below(server.place, 'url')
  if (typeof url !== 'string') throw new DocumentError(place, 'must be a string')
  const filled = url.replaceAll(/\{([^{}]*)\}/g, (_, name: string) => variableOf(name, variables, place, source))
  const base = server.place.file.url
  const absolute = URL.parse(filled, base.protocol === 'file:' ? undefined : base.href)
  if (!absolute) throw new DocumentError(place, `"${url}" is a relative URL: ${SET_IT}`)
  if (!/^https?:$/.test(absolute.protocol)) throw new DocumentError(place, `"${url}" is not http or https: ${SET_IT}`)
  return absolute
}

function variableOf(name: string, variables: unknown, place: Place, { serverVariables = {} }: Source): string {
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
