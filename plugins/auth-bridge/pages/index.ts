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
  /**
   * A plain link under the button, such as the way back to the application: an address of an app, too. Left out where its
   * address is none that is safe to click on.
   */
  readonly other?: { readonly label: string; readonly href: string }
  readonly isError: boolean
}

export interface SignInView {
  readonly text: string
  readonly label: string
  /** Where the button leads, with GET: the provider's pages come next, and a form would not be let there. */
  readonly action: string
}

export interface ChoiceView {
  readonly state: string
  readonly action: string
}

const button = (href: string | undefined, label: string) =>
  href === undefined ? undefined : html`<p><a class="button main" href="${href}">${shown(label)}</a></p>`

/** As apps have them: `cursor://...`, `com.example.app:...` (RFC 8252, section 7.1). */
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

/**
 * Goes on by itself, or by its link. `form-action` holds for all redirects after a form, those of the client's own site too;
 * it ends here, for what begins with this page is no answer to a form.
 */
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

/**
 * Pages with their Content-Security-Policy. Send them with `Referrer-Policy: same-origin`, or browsers send forms with
 * `Origin: null`. Forms post `csrf` and their fields to their own URL.
 */
export function createPages(settings: PageSettings) {
  const layout = createLayout(settings)
  return {
    consent: (question: ConsentQuestion) => writeConsent(question, settings, layout),
    account: (view: AccountView) => writeAccount(view, layout),
    message: (message: Message) => writeMessage(message, layout),
    signIn: (view: SignInView) => writeSignIn(view, layout),
    chooseUser: (view: ChoiceView) => writeChoice(view, settings, layout),
    /** Replaces a redirect after the consent form, which `form-action` would block. Throws a TypeError for unsafe URIs. */
    leave: (uri: string) => writeLeave(uri, layout),
  }
}
