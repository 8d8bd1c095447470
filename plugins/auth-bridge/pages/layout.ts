// The layout of the pages (logo, name, contact, development banner), and the display of clients, users and URLs.

import { readFileSync, statSync } from 'node:fs'
import { extname, resolve } from 'node:path'
import { isLoopback } from '../../../core/auth.ts'
import { StartError } from '../../../core/plugin.ts'
import { html, type Markup, type Page, safeHref, shown, shownHost, writePage } from '../../families/pages/index.ts'
import { isAppScheme } from '../clients/redirects.ts'
import type { FilledAuthBridge } from '../options.ts'
import type { Person } from '../upstream/upstream.ts'

export interface ShownClient {
  readonly name: string | undefined
  readonly id: string
  /** Host of the metadata document; undefined for a registered client with an unverified name. */
  readonly documentHost: string | undefined
  readonly isKnown: boolean
  readonly homepage?: string
}

export type ShownPerson = Pick<Person, 'name' | 'email' | 'subject'>

const MAX_ITEMS = 50
const MAX_URL = 300

export interface Destination {
  readonly kind: 'web' | 'computer' | 'app' | 'unknown'
  readonly place: string
}

export function readDestination(uri: string): Destination {
  const unknown = { kind: 'unknown', place: shown(uri, MAX_URL) } as const
  if (!URL.canParse(uri)) return unknown
  const { protocol, hostname, host } = new URL(uri)
  if (!isAppScheme(protocol)) return unknown
  if (protocol !== 'http:' && protocol !== 'https:') {
    const isHierarchical = uri.trim().slice(protocol.length).startsWith('//')
    return { kind: 'app', place: shown(isHierarchical ? `${protocol}//` : protocol) }
  }
  // A host in a URL can contain `;` or `*`, a machine name cannot.
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

const STANDARD_SCOPES: ReadonlyMap<string, string> = new Map([
  ['openid', 'Confirm your identity'],
  ['profile', 'Read your name'],
  ['email', 'Read your email address'],
  ['offline_access', 'Keep access while you are away'],
])

export function writeScope(scope: string, titles: PageSettings['scopeTitles']): Markup {
  const title = titles?.get(scope) ?? STANDARD_SCOPES.get(scope)
  const code = html`<code>${shown(scope)}</code>`
  return title === undefined ? code : html`${shown(title)} <span class="scope">${code}</span>`
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

export interface Logo {
  readonly type: string
  readonly data: Buffer
}

export interface PageSettings {
  readonly page: FilledAuthBridge['page'] & { readonly name: string }
  readonly label: string
  readonly logo?: Logo | undefined
  readonly users?: FilledAuthBridge['provider']['users'] | undefined
  /** Shows the development banner. */
  readonly isDevelopment?: boolean
  /** Titles of scopes, for people. */
  readonly scopeTitles?: ReadonlyMap<string, string>
  /** Base path, such as `/auth`. The account page is below it. */
  readonly base: string
}

const MAX_BYTES = 256 * 1024

const TYPES: Readonly<Record<string, string>> = {
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.webp': 'image/webp',
}

/** Throws a StartError for a missing file, more than 256 kB, or another type. An embedded SVG cannot run scripts. */
export function readLogo(file: string, directory: string): Logo {
  const refuse = (why: string, cause?: unknown) =>
    new StartError('MH2105', `the logo ${JSON.stringify(file)} ${why}`, { exitCode: 2, cause })
  const type = TYPES[extname(file).toLowerCase()]
  if (type === undefined) throw refuse('is not a .svg, .png, .jpg, .jpeg or .webp file')
  const path = resolve(directory, file)
  let data: Buffer
  try {
    const about = statSync(path)
    if (!about.isFile()) throw refuse('is no file; name the picture itself')
    const { size } = about
    if (size > MAX_BYTES) throw refuse(`has ${size} bytes; at most ${MAX_BYTES} (256 kB) are allowed: make it smaller`)
    data = readFileSync(path)
  } catch (cause) {
    if (cause instanceof StartError) throw cause
    const { code } = cause as NodeJS.ErrnoException
    throw refuse(`cannot be read (${code}); it is looked for in the folder of the config`, cause)
  }
  return { type, data }
}

export type Layout = (body: Omit<Parameters<typeof writePage>[0], 'header' | 'footer'>) => Page

function writeSupport(support: string): Markup {
  const isAddress = /^(?:https|mailto):/i.test(support)
  const href = isAddress ? safeHref(support) : undefined
  if (href === undefined) return html`<p>${shown(support, 200)}</p>`
  const label = shown(support.replace(/^(?:https:\/\/|mailto:)/i, ''), 200)
  return html`<p>Questions? <a href="${href}">${label}</a></p>`
}

const BANNER = html`<p class="banner"><strong>Development:</strong> no password required</p>`

export function createLayout({ page, logo, isDevelopment = false }: PageSettings): Layout {
  const name = shown(page.name)
  const source = logo && `data:${logo.type};base64,${logo.data.toString('base64')}`
  const image = source === undefined ? undefined : html`<img src="${source}" alt="">`
  const header = html`${image}<p>${name}</p>${isDevelopment ? BANNER : undefined}`
  const footer = page.support === undefined ? undefined : html`<footer>${writeSupport(page.support)}</footer>`
  return ({ title, ...body }) => writePage({ ...body, title: `${shown(title, 120)} – ${name}`, header, footer })
}
