// HTML templates with escaped values, and safe display of untrusted text.
import { isLoopback } from '../../../core/auth.ts'

export class Markup {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export type Part = string | Markup | readonly Part[] | undefined

const escapeHtml = (text: string) => text.replace(/[&<>"'`]/g, character => `&#${character.charCodeAt(0)};`)

function write(part: Part): string {
  if (part === undefined) return ''
  if (typeof part === 'string') return escapeHtml(part)
  return part instanceof Markup ? part.text : part.map(write).join('')
}

/** Attribute values need double quotes. */
export const html = (strings: TemplateStringsArray, ...parts: readonly Part[]): Markup =>
  new Markup(strings.map((string, index) => string + write(parts[index])).join(''))

const MAX_READ = 8_000
const SPACES = /[\s\p{Zs}\p{Zl}\p{Zp}\u2800]+/gu
/** Invisible characters, or characters that change their neighbours: control, format, private use, fillers. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu
/** More than three combining marks overlap other lines. */
const PILED = /(\p{M}{3})\p{M}+/gu

const clean = (text: string) =>
  text.slice(0, MAX_READ).replace(SPACES, ' ').replace(UNSEEN, '').replace(PILED, '$1').replace(/ +/g, ' ').trim()

export function shown(text: string, most = 80): string {
  const characters = [...clean(text)]
  return characters.length <= most
    ? characters.join('')
    : `${characters
        .slice(0, most - 1)
        .join('')
        .trimEnd()}…`
}

/** Shortens a host name at its front, because its end identifies the owner. */
export function shownHost(host: string, most = 253): string {
  const characters = [...clean(host)]
  return characters.length <= most ? characters.join('') : `…${characters.slice(1 - most).join('')}`
}

export const quoted = (text: string): string => `“${text.replace(/["“”„‟«»″＂]/g, "'")}”`

/** Undefined unless http, https, mailto or a local path. */
export function safeHref(href: string): string | undefined {
  if (/^\/(?![/\\])[\x21-\x7e]*$/.test(href)) return href
  if (!URL.canParse(href)) return undefined
  const url = new URL(href)
  return ['https:', 'http:', 'mailto:'].includes(url.protocol) ? url.href : undefined
}

export interface ShownClient {
  readonly name: string | undefined
  readonly id: string
  /** Host of the metadata document; undefined for a registered client with an unverified name. */
  readonly documentHost: string | undefined
  readonly isKnown: boolean
  readonly homepage?: string
}

export interface ShownPerson {
  readonly name?: string
  readonly email?: string
  readonly subject: string
}

const MAX_ITEMS = 50
const MAX_URL = 300

const OWN_SCHEMES: ReadonlySet<string> = new Set(
  ['javascript', 'data', 'blob', 'about', 'file', 'filesystem', 'view-source', 'chrome'].map(name => `${name}:`),
)

export interface Destination {
  readonly kind: 'web' | 'computer' | 'app' | 'unknown'
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
  // A URL host can contain `;` or `*`, a machine name cannot.
  if (!hostname.startsWith('[') && !/^[a-z0-9._-]+$/.test(hostname)) return unknown
  if (isLoopback(hostname)) return { kind: 'computer', place: 'This computer' }
  return { kind: 'web', place: shownHost(host) }
}

export const shownUrl = (url: string): string => shown(url, MAX_URL)

export function writePerson({ name, email, subject }: ShownPerson): Markup {
  const [known = '', ...more] = [name, email].flatMap(text => (text === undefined ? [] : shown(text) || []))
  if (known === '') return html`<strong><bdi>${shown(subject)}</bdi></strong>`
  return html`<strong><bdi>${known}</bdi></strong>${more.map(text => html` (<bdi>${text}</bdi>)`)}`
}

export const nameOf = ({ name = '' }: ShownClient): string => shown(name)

export const isUnverified = ({ isKnown, documentHost }: ShownClient): boolean => !isKnown && documentHost === undefined

export function homepageOf({ homepage, isKnown, documentHost }: ShownClient): Markup | undefined {
  const href = homepage === undefined ? undefined : safeHref(homepage)
  if (href === undefined || !/^https?:/.test(href)) return undefined
  const { host, username, password } = new URL(href)
  if (username !== '' || password !== '' || !(isKnown || host === documentHost)) return undefined
  return html`<a href="${href}" rel="noreferrer">${shownHost(host)}</a>`
}

export function writeItems<Item>(items: readonly Item[], write: (item: Item) => Markup): Markup {
  const rest = items.length - MAX_ITEMS
  const more = rest > 0 ? html`<li><strong>And ${String(rest)} more.</strong></li>` : undefined
  return html`<ul class="list">${items.slice(0, MAX_ITEMS).map(item => html`<li>${write(item)}</li>`)}${more}</ul>`
}
