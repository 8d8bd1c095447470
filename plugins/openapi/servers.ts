// The base URL of an operation: configured, or from the document's servers.
import { isObject } from '../../core/plugin.ts'
import { type Api, type Candidate, childOf, objectAt } from './api.ts'
import { below, DocumentError, type Place } from './document/place.ts'
import type { Found } from './document/references.ts'
import type { Source } from './options.ts'
import { trimEndOf } from './trim-end.ts'

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
  if (main.protocol !== 'file:' && url.origin !== main.origin && !source.allowHosts?.includes(url.host)) {
    const why = `the server ${url.origin} has another origin than the document`
    throw new DocumentError(place, `${why}: ${SET_IT}, or list "${url.host}" in \`allowHosts\``)
  }
  return `${url.origin}${trimEndOf(url.pathname, '/')}`
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
