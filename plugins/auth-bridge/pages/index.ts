// The pages of auth-bridge: pure functions from data to HTML, without scripts and external resources.
import type { UserPage } from '../../../core/auth.ts'
import { html, type Markup, type Page, quoted, safeHref, shown, shownHost } from '../../families/pages/index.ts'
import { type ConsentQuestion, writeConsent } from './consent.ts'
import {
  createLayout,
  isUnverified,
  type Layout,
  nameOf,
  type PageSettings,
  readDestination,
  type ShownClient,
  type ShownPerson,
  shownUrl,
  writePerson,
  writeScope,
} from './layout.ts'

export type { ConsentQuestion } from './consent.ts'
export type { ShownClient } from './layout.ts'
export { type Logo, type PageSettings, readLogo } from './layout.ts'

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
  const said = shown(title, 120)
  return layout({
    ...(list && { formAction: "'self'" }),
    title: isError ? `Error: ${said}` : said,
    content: html`<h1>${said}</h1>
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
