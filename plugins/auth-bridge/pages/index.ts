// The pages of auth-bridge: pure functions from data to HTML, without scripts and external resources.

import { readFileSync, statSync } from 'node:fs'
import { extname, resolve } from 'node:path'
import { isLoopback, type UserPage } from '../../../core/auth.ts'
import { StartError } from '../../../core/plugin.ts'
import {
  html,
  type Markup,
  type Page,
  quoted,
  safeHref,
  shown,
  shownHost,
  writePage,
} from '../../families/pages/index.ts'
import { isAppScheme } from '../clients/redirects.ts'
import type { FilledAuthBridge } from '../options.ts'
import type { Person } from '../upstream/upstream.ts'

interface ShownClient {
  readonly name: string | undefined
  readonly id: string
  /** Host of the metadata document; undefined for a registered client with an unverified name. */
  readonly documentHost: string | undefined
  readonly isKnown: boolean
  readonly homepage?: string
}

type ShownPerson = Pick<Person, 'name' | 'email' | 'subject'>

const MAX_ITEMS = 50
const MAX_URL = 300

interface Destination {
  readonly kind: 'web' | 'computer' | 'app' | 'unknown'
  readonly place: string
}

function readDestination(uri: string): Destination {
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

const shownUrl = (url: string): string => shown(url, MAX_URL)

function writePerson({ name, email, subject }: ShownPerson): Markup {
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

function writeScope(scope: string, titles: PageSettings['scopeTitles']): Markup {
  const title = titles?.get(scope) ?? STANDARD_SCOPES.get(scope)
  const code = html`<code>${shown(scope)}</code>`
  return title === undefined ? code : html`${shown(title)} <span class="scope">${code}</span>`
}

const nameOf = ({ name = '' }: ShownClient): string => shown(name)

const isUnverified = ({ isKnown, documentHost }: ShownClient): boolean => !isKnown && documentHost === undefined

function homepageOf({ homepage, isKnown, documentHost }: ShownClient): Markup | undefined {
  const href = homepage === undefined ? undefined : safeHref(homepage)
  if (href === undefined || !/^https?:/.test(href)) return undefined
  const { host, username, password } = new URL(href)
  if (username !== '' || password !== '' || !(isKnown || host === documentHost)) return undefined
  return html`<a href="${href}" rel="noreferrer">${shownHost(host)}</a>`
}

function writeItems<Item>(items: readonly Item[], write: (item: Item) => Markup): Markup {
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
  /** Titles of scopes on pages. */
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
    if (!about.isFile()) throw refuse('is not a file; set the path of an image')
    const { size } = about
    if (size > MAX_BYTES) throw refuse(`has ${size} bytes; at most ${MAX_BYTES} (256 kB) are allowed: make it smaller`)
    data = readFileSync(path)
  } catch (cause) {
    if (cause instanceof StartError) throw cause
    const { code } = cause as NodeJS.ErrnoException
    throw refuse(`cannot be read (${code}); its path is relative to the folder of the config`, cause)
  }
  return { type, data }
}

type Layout = (body: Omit<Parameters<typeof writePage>[0], 'header' | 'footer'>) => Page

function writeSupport(support: string): Markup {
  const isAddress = /^(?:https|mailto):/i.test(support)
  const href = isAddress ? safeHref(support) : undefined
  if (href === undefined) return html`<p>${shown(support, 200)}</p>`
  const label = shown(support.replace(/^(?:https:\/\/|mailto:)/i, ''), 200)
  return html`<p>Questions? <a href="${href}">${label}</a></p>`
}

const BANNER = html`<p class="banner"><strong>Development:</strong> no password required</p>`

function createLayout({ page, logo, isDevelopment = false }: PageSettings): Layout {
  const name = shown(page.name)
  const source = logo && `data:${logo.type};base64,${logo.data.toString('base64')}`
  const image = source === undefined ? undefined : html`<img src="${source}" alt="">`
  const header = html`${image}<p>${name}</p>${isDevelopment ? BANNER : undefined}`
  const footer = page.support === undefined ? undefined : html`<footer>${writeSupport(page.support)}</footer>`
  return ({ title, ...body }) => writePage({ ...body, title: `${shown(title, 120)} – ${name}`, header, footer })
}

export interface ConsentQuestion {
  readonly client: ShownClient
  readonly redirect: { readonly uri: string }
  readonly person: ShownPerson
  readonly resources: readonly string[]
  readonly scopes: readonly string[]
  readonly withheld?: readonly string[]
  readonly remembered: boolean
  readonly changed?: 'redirect' | 'document'
  readonly token: string
}

const CHANGED = {
  redirect: 'Since you last allowed this client, its redirect URI has changed.',
  document: 'Since you last allowed this client, its description of itself has changed.',
} as const

function writeChange(changed: ConsentQuestion['changed']): Markup | undefined {
  if (changed === undefined) return undefined
  return html`<p class="note warn"><strong>Something changed.</strong> ${CHANGED[changed]} Deny if you did not expect this.</p>`
}

const small = (content: Markup | string) => html`<span class="small">${content}</span>`

function writeSource({ client }: ConsentQuestion, service: string): Markup {
  const { isKnown, documentHost } = client
  if (isKnown) return small(`Registered by the operator of ${service}.`)
  if (documentHost === undefined) return small('Unverified: the client chose this name itself.')
  return html`<span class="small">Described by the website <strong>${shownHost(documentHost)}</strong>. Check that you know this website.</span>`
}

function writeClient(question: ConsentQuestion, service: string): Markup {
  const { client } = question
  const name = nameOf(client)
  const homepage = homepageOf(client)
  return html`<dt>Client</dt>
<dd>${name === '' ? 'No name' : html`<strong><bdi>${name}</bdi></strong>`}${writeSource(question, service)}${homepage && small(html`Homepage: ${homepage}`)}</dd>`
}

const EXPLAINED: Readonly<Record<Destination['kind'], string>> = {
  web: 'A website, whose operator can then act for you.',
  computer: 'The client runs on this computer.',
  app: 'An app on this device that opens these links.',
  unknown: 'This redirect URI is invalid.',
}

function writeDestination({ client, redirect }: ConsentQuestion): Markup {
  const { kind, place } = readDestination(redirect.uri)
  const isOpen = kind === 'web' && /^http:/i.test(redirect.uri.trim())
  const isBorrowed = !client.isKnown && client.documentHost !== undefined && (kind === 'computer' || kind === 'app')
  return html`<dt>Access goes to</dt>
<dd><strong><bdi>${place}</bdi></strong>${small(EXPLAINED[kind])}${
    isBorrowed ? small('Other programs on this computer can use the same client name.') : undefined
  }${isOpen ? html`<span class="note warn">The connection is not encrypted. Others can read the access code.</span>` : undefined}</dd>`
}

const MAX_WITHHELD = 10

function writeWithheld(scopes: readonly string[]): Markup | undefined {
  if (scopes.length === 0) return undefined
  const named = scopes
    .slice(0, MAX_WITHHELD)
    .map((scope, index) => html`${index > 0 ? ', ' : ''}<code>${shown(scope)}</code>`)
  const rest = scopes.length - MAX_WITHHELD
  return small(html`Not available to your account: ${named}${rest > 0 ? ` and ${String(rest)} more` : ''}.`)
}

function writeAccess(
  { resources, scopes, withheld = [] }: ConsentQuestion,
  titles: PageSettings['scopeTitles'],
): Markup {
  return html`<dt>Resource</dt>
<dd>${resources.length === 0 ? 'None' : writeItems(resources, url => html`<code>${shownUrl(url)}</code>`)}</dd>
<dt>Permissions</dt>
<dd>${scopes.length === 0 ? 'None' : writeItems(scopes, scope => writeScope(scope, titles))}${writeWithheld(withheld)}</dd>`
}

/** Deny comes first, because Enter submits with the first button (HTML, implicit submission). */
function writeForm({ client, remembered, token }: ConsentQuestion, base: string): Markup {
  return html`${
    isUnverified(client)
      ? html`<p class="note warn"><strong>The maker of this client is not verified.</strong>
Allow it only if you have just connected a program that you trust. If you are not sure, deny.</p>`
      : undefined
  }
<form method="post" class="decision">
<input type="hidden" name="csrf" value="${token}">
<div class="choice">
<button name="decision" value="deny">Deny</button>
<button class="main" name="decision" value="allow">Allow</button>
</div>
</form>
<p class="small">${remembered ? 'If you allow access, this browser remembers it.' : 'This page appears at each sign-in.'}
You can remove access on the page <a href="${base}/account">Your clients</a>.</p>`
}

const writeDetails = ({ client, redirect }: ConsentQuestion): Markup => html`<details>
<summary>Technical details</summary>
<dl>
<dt>Client ID</dt><dd><code>${shownUrl(client.id)}</code></dd>
<dt>Redirect URI</dt><dd><code>${shownUrl(redirect.uri)}</code></dd>
</dl>
</details>`

function writeConsent(question: ConsentQuestion, settings: PageSettings, layout: Layout): Page {
  const { page, label, base, scopeTitles } = settings
  const service = shown(page.name)
  return layout({
    title: 'Allow access?',
    formAction: "'self'",
    content: html`<h1>Allow access to ${service}?</h1>
${writeChange(question.changed)}
<p>The client will act for ${writePerson(question.person)}, signed in with ${shown(label)}.</p>
<dl class="facts">
${writeClient(question, service)}
${writeDestination(question)}
${writeAccess(question, scopeTitles)}
</dl>
${writeForm(question, base)}
${writeDetails(question)}`,
  })
}

export interface Message extends UserPage {
  readonly detail?: string
  /** A link under the button, which can open an app. Omitted if the URL is unsafe. */
  readonly other?: NonNullable<UserPage['action']>
}

/** `action`: target of a link, because form-action would block redirects to the provider. */
type SignInView = Readonly<Record<'text' | 'label' | 'action', string>>
type ChoiceView = Readonly<Record<'state' | 'action', string>>

const button = (href: string | undefined, label: string) =>
  href === undefined ? undefined : html`<p><a class="button main" href="${href}">${shown(label)}</a></p>`

const APP_ADDRESS = /^(?:[a-z][a-z0-9+.-]*:\/\/|[a-z][a-z0-9+-]*\.[a-z0-9+.-]*:)/

function linkHref(href: string): string | undefined {
  const safe = safeHref(href)
  if (safe !== undefined) return safe
  const app = readDestination(href).kind === 'app' ? new URL(href).href : ''
  return APP_ADDRESS.test(app) ? app : undefined
}

function writeOther({ label, href }: NonNullable<Message['other']>): Markup | undefined {
  const safe = linkHref(href)
  return safe === undefined ? undefined : html`<p><a href="${safe}">${shown(label)}</a></p>`
}

const writeList = ({ name, label, token, items }: NonNullable<Message['list']>): Markup => html`<ul class="list">
${[...items].map(
  ([value, text]) => html`<li><form method="post"><p>${shown(text, 300)}</p>${tokenField(token)}
<button name="${name}" value="${value}">${label}<span class="hidden"> ${shown(text, 300)}</span></button></form></li>`,
)}</ul>`

function writeMessage({ title, text, detail, action, other, isError, list }: Message, layout: Layout): Page {
  const heading = shown(title, 120)
  return layout({
    ...(list && { formAction: "'self'" }),
    title: isError ? `Error: ${heading}` : heading,
    content: html`<h1>${heading}</h1>
<p${isError ? html` class="note fault"` : undefined}>${shown(text, 1_000)}</p>
${list && writeList(list)}${action && button(safeHref(action.href), action.label)}
${other && writeOther(other)}
${detail === undefined ? undefined : html`<p class="small">${shown(detail, 200)}</p>`}`,
  })
}

function writeSignIn({ text, label, action }: SignInView, layout: Layout): Page {
  return layout({
    title: 'Sign in',
    content: html`<h1>Sign in</h1>
<p>${shown(text, 1_000)}</p>
${button(safeHref(action), `Sign in with ${label}`)}`,
  })
}

function writeChoice({ state, action }: ChoiceView, { users = [{ id: 'dev' }] }: PageSettings, layout: Layout): Page {
  const field = html`<input type="hidden" name="state" value="${state}">`
  return layout({
    title: 'Sign in',
    formAction: "'self'",
    content: html`<h1>Sign in</h1>
<p>Choose a user.</p>
<form action="${action}">
${field}
${users.map(({ id, name = id }) => html`<p><button name="user" value="${id}">${shown(name)}</button></p>`)}
</form>
<h2>Another user</h2>
<form action="${action}">
${field}
<p><label>User ID <input name="user" maxlength="100" required></label></p>
<p><label>Roles, separated by commas <input name="roles" maxlength="1000"></label></p>
<button>Sign in</button>
</form>`,
  })
}

/** Redirects without a form, because `form-action` also applies to redirects after a form. */
function writeLeave(uri: string, layout: Layout): Page {
  const { kind, place } = readDestination(uri)
  if (kind === 'unknown') throw new TypeError('a page cannot lead to this redirect URI')
  const { href } = new URL(uri)
  const isApp = kind === 'app'
  return layout({
    title: 'Returning to the client',
    head: html`<meta http-equiv="refresh" content="0; url=${href}">
`,
    content: html`<h1>${isApp ? 'Returning to the app' : 'Returning to the client'}</h1>
<p>If nothing happens, use the button. Then you can close this window.</p>
<p><a class="button main" href="${href}">${isApp ? 'Open the app' : 'Continue'}</a></p>
<p class="small"><bdi>${place}</bdi></p>`,
  })
}

export type Pages = ReturnType<typeof createPages>

export function createPages(settings: PageSettings) {
  const layout = createLayout(settings)
  return {
    consent: (question: ConsentQuestion) => writeConsent(question, settings, layout),
    account: (view: AccountView) => writeAccount(view, settings.scopeTitles, layout),
    message: (message: Message) => writeMessage(message, layout),
    signIn: (view: SignInView) => writeSignIn(view, layout),
    chooseUser: (view: ChoiceView) => writeChoice(view, settings, layout),
    /** Creates the page that redirects. Throws a TypeError for unsafe URIs. */
    leave: (uri: string) => writeLeave(uri, layout),
  }
}

interface ShownGrant {
  readonly grantId: string
  readonly client: ShownClient
  readonly redirectUri: string
  readonly resources?: readonly string[]
  readonly scopes: readonly string[]
  readonly since: number
  readonly used?: number
}

export interface AccountView {
  readonly person: ShownPerson
  readonly signedInWith: string
  readonly grants: readonly ShownGrant[]
  readonly token: string
  readonly notice?: string
}

const MAX_GRANTS = 200

const DAY = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' })

function writeDay(milliseconds: number | undefined): Markup {
  if (milliseconds === undefined) return html`Never`
  const date = new Date(milliseconds)
  if (Number.isNaN(date.getTime())) return html`Unknown`
  return html`<time datetime="${date.toISOString()}">${DAY.format(date)}</time>`
}

function describerOf(client: ShownClient): string {
  if (client.isKnown) return 'The operator of this service'
  return client.documentHost === undefined ? 'The client itself' : shownHost(client.documentHost)
}

const tokenField = (token: string) => html`<input type="hidden" name="csrf" value="${token}">`

const MAX_NAMED = 50

const writeNamed = (texts: readonly string[], write: (text: string) => string | Markup) =>
  html`${texts.slice(0, MAX_NAMED).map(text => html`<code>${write(text)}</code> `)}${texts.length > MAX_NAMED ? 'and more' : ''}`

function writeGrant(grant: ShownGrant, token: string, titles: PageSettings['scopeTitles']): Markup {
  const { grantId, client, redirectUri, resources = [], scopes, since, used } = grant
  const name = nameOf(client)
  return html`<li>
<h3>${name === '' ? html`<span class="box">Client without a name</span>` : html`<span class="box"><bdi>${name}</bdi></span>`}</h3>
<dl>
<dt>Described by</dt><dd>${describerOf(client)}${isUnverified(client) ? ' (unverified)' : ''}</dd>
<dt>Access goes to</dt><dd><bdi>${readDestination(redirectUri).place}</bdi></dd>
${resources.length === 0 ? undefined : html`<dt>Resources</dt><dd>${writeNamed(resources, shownUrl)}</dd>`}
<dt>Permissions</dt><dd>${scopes.length === 0 ? 'None' : scopes.slice(0, MAX_NAMED).map((scope, index) => html`${index > 0 ? ', ' : ''}${writeScope(scope, titles)}`)}</dd>
<dt>Allowed on</dt><dd>${writeDay(since)}</dd>
<dt>Last used</dt><dd>${writeDay(used)}</dd>
</dl>
<form method="post">
${tokenField(token)}
<button name="revoke" value="${grantId}">Remove access<span class="hidden"> of ${quoted(name === '' ? shown(grantId) : name)}</span></button>
</form>
</li>`
}

function writeGrants({ grants, token }: AccountView, titles: PageSettings['scopeTitles']): Markup {
  if (grants.length === 0) return html`<p>No client has access.</p>`
  const rest = grants.length - MAX_GRANTS
  return html`<ul class="list grants">
${grants.slice(0, MAX_GRANTS).map(grant => writeGrant(grant, token, titles))}
</ul>
${rest > 0 ? html`<p>And ${String(rest)} more, which appear here after you remove others.</p>` : undefined}`
}

function writeAccount(view: AccountView, titles: PageSettings['scopeTitles'], layout: Layout): Page {
  const { notice, person, signedInWith, token } = view
  return layout({
    title: 'Your clients',
    formAction: "'self'",
    content: html`<h1>Your clients</h1>
${notice === undefined ? undefined : html`<p class="note" role="status">${shown(notice, 300)}</p>`}
<p>You are signed in as ${writePerson(person)} with ${shown(signedInWith)}.</p>
<h2>Clients with access to your account</h2>
${writeGrants(view, titles)}
<h2>This browser</h2>
<form method="post">
${tokenField(token)}
<button name="signOut" value="yes">Sign out</button>
</form>`,
  })
}
