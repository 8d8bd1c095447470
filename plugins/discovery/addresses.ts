// What a route's addresses are called in discovery documents: names and identifiers that stay as they are for as long as the
// paths do.
import type { McpRoute } from '../../core/index.ts'

/** Where a card is, below its route. */
export const CARD = '/server-card'
export const CATALOG = '/.well-known/ai-catalog.json'
/** Characters of a title and a description that a card has room for. */
export const MOST_TEXT = 100

/** A reversed domain name, a slash and a name. */
export const NAME =
  /^[A-Za-z\d](?:[A-Za-z\d-]*[A-Za-z\d])?(?:\.[A-Za-z\d](?:[A-Za-z\d-]*[A-Za-z\d])?)+\/[A-Za-z\d._-]+$/

export type Params = Readonly<Record<string, string>>

/** What a name may have besides letters, digits and hyphens is written by its bytes. */
const plain = (text: string) => text.replace(/[^A-Za-z\d-]/gu, found => `_${Buffer.from(found).toString('hex')}`)

const parametersIn = (path: string) =>
  [...path.matchAll(/\/:(\w+)(\?)?(?=\/|$)/g)].map(([, name = '', optional]) => ({ name, optional: optional === '?' }))

/** The parameters of each address that can be known: where a parameter may be anything, none is. */
export function knownAddresses(route: McpRoute): Params[] {
  const [first, ...others] = parametersIn(route.path)
  if (!first) return [{}]
  if (others.length > 0) return []
  const without = first.optional ? [{}] : []
  return [...without, ...route.listedCategories.map(category => ({ [first.name]: category }))].filter(route.serves)
}

/**
 * The name of an address: `com.acme/tools` at the root, `com.acme/tools.admin` at `/admin`. A first part `mcp`, as clients expect
 * it, adds nothing; nor does a parameter that may be anything, of which a client could say what it likes.
 */
export function nameAt(name: string, route: McpRoute, params: Params): string {
  const parts = route.path.split('/').slice(1)
  const texts = parts.flatMap((part, index) => {
    const [, parameter] = /^:(\w+)\??$/.exec(part) ?? []
    if (parameter === undefined) return part === '' || (index === 0 && part === 'mcp') ? [] : [part]
    const value = params[parameter]
    return value !== undefined && route.categories.includes(value) ? [value] : []
  })
  return [name, ...texts.map(plain)].join('.')
}

/** `urn:air:acme.com:mcp:tools`, of `com.acme/tools`. */
export function identifierOf(name: string): string {
  const [publisher = '', own = ''] = name.split('/')
  return `urn:air:${publisher.split('.').reverse().join('.')}:mcp:${own}`
}
