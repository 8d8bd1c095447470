// Parts of several pages: clients, people, lists, and where a redirect URI leads.
import { isLoopback } from '../../../core/auth.ts'
import { html, type Markup, safeHref, shown, shownHost } from './html.ts'
import type { ShownClient, ShownPerson } from './views.ts'

/** Of a list; what is left out is counted. */
const MAX_ITEMS = 50
const MAX_URL = 300

/** Schemes whose links run or show something in the browser itself. */
const OWN_SCHEMES: ReadonlySet<string> = new Set(
  ['javascript', 'data', 'blob', 'about', 'file', 'filesystem', 'view-source', 'chrome'].map(name => `${name}:`),
)

/** Where a redirect URI leads. */
export interface Destination {
  readonly kind: 'web' | 'computer' | 'app' | 'unknown'
  /** A host, a scheme such as `cursor://`, or `This computer`. */
  readonly place: string
}

export function readDestination(uri: string): Destination {
  const unknown = { kind: 'unknown', place: shown(uri, MAX_URL) } as const
  if (!URL.canParse(uri)) return unknown
  const { protocol, hostname, host } = new URL(uri)
  if (OWN_SCHEMES.has(protocol)) return unknown
  if (protocol !== 'http:' && protocol !== 'https:') {
    const isHierarchical = uri.trim().slice(protocol.length).startsWith('//')
    return { kind: 'app', place: shown(isHierarchical ? `${protocol}//` : protocol) }
  }
  // A URL's host may have a ; or a * in it, which no name of a machine has.
  if (!hostname.startsWith('[') && !/^[a-z0-9._-]+$/.test(hostname)) return unknown
  if (isLoopback(hostname)) return { kind: 'computer', place: 'This computer' }
  return { kind: 'web', place: shownHost(host) }
}

/** On a line, and no longer than pages can bear. */
export const shownUrl = (url: string): string => shown(url, MAX_URL)

/** A person by what they know of themselves. */
export function writePerson({ name, email, subject }: ShownPerson): Markup {
  const [known = '', ...more] = [name, email].flatMap(text => (text === undefined ? [] : shown(text) || []))
  if (known === '') return html`<strong><bdi>${shown(subject)}</bdi></strong>`
  return html`<strong><bdi>${known}</bdi></strong>${more.map(text => html` (<bdi>${text}</bdi>)`)}`
}

/** The name that it gave itself; empty where it gave none that can be seen. */
export const nameOf = ({ name = '' }: ShownClient): string => shown(name)

/** Known neither by the config nor by a document of a host. */
export const isUnverified = ({ isKnown, documentHost }: ShownClient): boolean => !isKnown && documentHost === undefined

/** Its page, where we may believe that it is its page. */
export function homepageOf({ homepage, isKnown, documentHost }: ShownClient): Markup | undefined {
  const href = homepage === undefined ? undefined : safeHref(homepage)
  if (href === undefined || !/^https?:/.test(href)) return undefined
  const { host, username, password } = new URL(href)
  if (username !== '' || password !== '' || !(isKnown || host === documentHost)) return undefined
  return html`<a href="${href}" rel="noreferrer">${shownHost(host)}</a>`
}

/** Items of a list; of too many the rest is counted. */
export function writeItems<Item>(items: readonly Item[], write: (item: Item) => Markup): Markup {
  const rest = items.length - MAX_ITEMS
  const more = rest > 0 ? html`<li><strong>And ${String(rest)} more.</strong></li>` : undefined
  return html`<ul class="list">${items.slice(0, MAX_ITEMS).map(item => html`<li>${write(item)}</li>`)}${more}</ul>`
}
