// Finds the next page of a result in `Link` headers and in common cursor fields.
import { isObject } from '../../core/plugin.ts'
import type { Operation, Parameter } from './operation.ts'
import { headerOf, type ResponseHeaders } from './request-send.ts'
import { argumentName } from './request-target.ts'

/** Response fields with a cursor, and the query parameters that accept it. Names are compared without case and `_`. */
const CURSORS: readonly (readonly [field: string, parameters: readonly string[]])[] = [
  ['nextpagetoken', ['pagetoken', 'nextpagetoken']],
  ['nextcursor', ['cursor', 'nextcursor', 'after', 'startcursor']],
  ['nexttoken', ['nexttoken', 'token']],
  ['continue', ['continue']],
  ['continuationtoken', ['continuationtoken']],
  ['endcursor', ['after', 'cursor']],
  ['cursor', ['cursor']],
  ['nextpage', ['page', 'pagenumber']],
]
/** Objects that contain such fields. */
const CONTAINERS = new Set(['pagination', 'paging', 'pageinfo', 'responsemetadata', 'meta', 'metadata', 'cursors'])
const MAX_CURSOR = 2_000
const MAX_LINK = 8_192

const plain = (name: string): string => name.replace(/[^A-Za-z0-9]/g, '').toLowerCase()

const queryOf = ({ parameters }: Operation): Parameter[] => parameters.filter(({ in: place }) => place === 'query')

const LINK = /<([^<>]*)>((?:\s*;\s*[\w*-]+\s*=\s*(?:"[^"]*"|[^\s;,"]*))*)/g

/** Returns the target of `rel="next"` (RFC 8288). */
function findNextLink(headers: ResponseHeaders): string | undefined {
  const { link } = headers
  const text = Array.isArray(link) ? link.join(', ') : link
  if (text === undefined || text.length > MAX_LINK) return undefined
  for (const [, target, parameters = ''] of text.matchAll(LINK)) {
    const relation = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]*))/i.exec(parameters)
    if ((relation?.[1] ?? relation?.[2] ?? '').toLowerCase().split(/\s+/).includes('next')) return target
  }
  return undefined
}

type Arguments = Readonly<Record<string, string | number>>

const hint = (args: Arguments): string | undefined =>
  Object.keys(args).length === 0 ? undefined : `More results: repeat the call with ${JSON.stringify(args)}.`

const convertCursor = ({ schema }: Parameter, text: string): string | number => {
  const { type } = schema as { readonly type?: unknown }
  const isNumber = type === 'integer' || type === 'number'
  return isNumber && /^\d{1,15}$/.test(text) ? Number(text) : text
}

/** Returns the arguments that differ from those of the call. */
function linkHint(link: string, operation: Operation, sent: URLSearchParams): string | undefined {
  if (!URL.canParse(link, operation.baseUrl)) return undefined
  const next = new URL(link, operation.baseUrl).searchParams
  const changed = queryOf(operation).flatMap(parameter => {
    const text = next.get(parameter.name)
    if (text === null || text.length > MAX_CURSOR || text === sent.get(parameter.name)) return []
    return [[argumentName(parameter.argument), convertCursor(parameter, text)] as const]
  })
  return hint(Object.fromEntries(changed))
}

function findCursor(value: Readonly<Record<string, unknown>>, wanted: string): string | undefined {
  for (const [name, member] of Object.entries(value)) {
    if (plain(name) !== wanted) continue
    if (typeof member === 'number') return String(member)
    if (typeof member === 'string' && member !== '' && member.length <= MAX_CURSOR) return member
  }
  return undefined
}

const isLastPage = (value: Readonly<Record<string, unknown>>): boolean =>
  Object.entries(value).some(([name, member]) => member === false && /^has(?:more|nextpage|next)$/.test(plain(name)))

/** Continues lists after the id of their last item, as in Stripe's API. */
function cursorAfterLast(value: Readonly<Record<string, unknown>>, parameter: Parameter): string | undefined {
  const { has_more: hasMore, data } = value as { readonly has_more?: unknown; readonly data?: unknown }
  if (hasMore !== true || !Array.isArray(data)) return undefined
  const last: unknown = data.at(-1)
  const id = isObject(last) ? last['id'] : undefined
  return typeof id === 'string' ? hint({ [argumentName(parameter.argument)]: id }) : undefined
}

interface PageParameters {
  readonly cursors: readonly (readonly [field: string, parameter: Parameter])[]
  readonly afterLast: Parameter | undefined
}

const pageParameters = new WeakMap<Operation, PageParameters | 'none'>()

/** Returns the parameters of an operation that accept a cursor. */
function findParameters(operation: Operation): PageParameters | 'none' {
  const known = pageParameters.get(operation)
  if (known) return known
  const inQuery = queryOf(operation)
  const cursors = CURSORS.flatMap(([field, names]) => {
    const parameter = inQuery.find(({ name }) => names.includes(plain(name)))
    return parameter ? [[field, parameter] as const] : []
  })
  const last = inQuery.find(({ name }) => plain(name) === 'startingafter')
  const found = cursors.length === 0 && !last ? 'none' : { cursors, afterLast: last }
  pageParameters.set(operation, found)
  return found
}

function bodyHint(value: unknown, operation: Operation): string | undefined {
  const parameters = findParameters(operation)
  if (parameters === 'none' || !isObject(value)) return undefined
  const inner = Object.entries(value).flatMap(([name, member]) =>
    isObject(member) && CONTAINERS.has(plain(name)) ? [member] : [],
  )
  for (const object of [value, ...inner]) {
    if (isLastPage(object)) return undefined
    for (const [field, parameter] of parameters.cursors) {
      const cursor = findCursor(object, field)
      if (cursor !== undefined) return hint({ [argumentName(parameter.argument)]: convertCursor(parameter, cursor) })
    }
  }
  return parameters.afterLast && cursorAfterLast(value, parameters.afterLast)
}

/** Returns a text on how to get the next page; undefined if there is none. `query`: the query of the request. */
export function findNextPage(
  headers: ResponseHeaders,
  value: unknown,
  operation: Operation,
  query: string,
): string | undefined {
  const link = headerOf(headers, 'link') === undefined ? undefined : findNextLink(headers)
  if (link === undefined) return bodyHint(value, operation)
  return linkHint(link, operation, new URLSearchParams(query))
}
