// The pages of auth-bridge: pure functions from data to HTML, without scripts and external resources.

import { type AccountView, writeAccount } from './account.ts'
import { type ConsentQuestion, writeConsent } from './consent.ts'
import { html, type Markup, readDestination, safeHref, shown } from './html.ts'
import { createLayout, type Layout, type Page, type PageSettings } from './layout.ts'

export type { AccountView, ShownGrant } from './account.ts'
export type { ConsentQuestion } from './consent.ts'
export type { ShownClient } from './html.ts'
export { type Logo, type Page, type PageSettings, readLogo } from './layout.ts'

export interface Message {
  readonly title: string
  readonly text: string
  readonly detail?: string
  readonly action?: { readonly label: string; readonly href: string }
  /** A link under the button, which can open an app. Omitted if the URL is unsafe. */
  readonly other?: { readonly label: string; readonly href: string }
  readonly isError: boolean
}

export interface SignInView {
  readonly text: string
  readonly label: string
  /** Target of the button (GET): form-action would block redirects to the provider. */
  readonly action: string
}

export interface ChoiceView {
  readonly state: string
  readonly action: string
}

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

export function writeMessage({ title, text, detail, action, other, isError }: Message, layout: Layout): Page {
  const said = shown(title, 120)
  return layout({
    title: isError ? `Error: ${said}` : said,
    content: html`<h1>${said}</h1>
<p${isError ? html` class="note fault"` : undefined}>${shown(text, 1_000)}</p>
${action && button(safeHref(action.href), action.label)}
${other && writeOther(other)}
${detail === undefined ? undefined : html`<p class="small">${shown(detail, 200)}</p>`}`,
  })
}

export function writeSignIn({ text, label, action }: SignInView, layout: Layout): Page {
  return layout({
    title: 'Sign in',
    content: html`<h1>Sign in</h1>
<p>${shown(text, 1_000)}</p>
${button(safeHref(action), `Sign in with ${label}`)}`,
  })
}

export function writeChoice(
  { state, action }: ChoiceView,
  { users = [{ id: 'dev' }] }: PageSettings,
  layout: Layout,
): Page {
  const field = html`<input type="hidden" name="state" value="${state}">`
  return layout({
    title: 'Sign in (development)',
    formAction: "'self'",
    content: html`<h1>Sign in</h1>
<p>This is a development server: it asks for no password.</p>
<form action="${action}">
${field}
${users.map(({ id, name = id }) => html`<p><button name="user" value="${id}">${shown(name)}</button></p>`)}
</form>
<h2>As another user</h2>
<form action="${action}">
${field}
<p><label>User <input name="user" maxlength="100" required></label></p>
<p><label>Roles <input name="roles"></label></p>
<button>Sign in</button>
</form>`,
  })
}

/** Redirects without a form, because `form-action` also applies to redirects after a form. */
export function writeLeave(uri: string, layout: Layout): Page {
  const { kind, place } = readDestination(uri)
  if (kind === 'unknown') throw new TypeError('a page cannot lead to this redirect URI')
  const { href } = new URL(uri)
  const isApp = kind === 'app'
  return layout({
    title: 'Going back',
    head: html`<meta http-equiv="refresh" content="0; url=${href}">
`,
    content: html`<h1>${isApp ? 'Going back to the app' : 'Going back to the client'}</h1>
<p>If nothing happens, go on by yourself. After that you can close this window.</p>
<p><a class="button main" href="${href}">${isApp ? 'Open the app' : 'Go on'}</a></p>
<p class="small"><bdi>${place}</bdi></p>`,
  })
}

export type Pages = ReturnType<typeof createPages>

/** Requires `Referrer-Policy: same-origin`: otherwise browsers send forms with `Origin: null`. */
export function createPages(settings: PageSettings) {
  const layout = createLayout(settings)
  return {
    consent: (question: ConsentQuestion) => writeConsent(question, settings, layout),
    account: (view: AccountView) => writeAccount(view, layout),
    message: (message: Message) => writeMessage(message, layout),
    signIn: (view: SignInView) => writeSignIn(view, layout),
    chooseUser: (view: ChoiceView) => writeChoice(view, settings, layout),
    /** Throws a TypeError for unsafe URIs. */
    leave: (uri: string) => writeLeave(uri, layout),
  }
}
