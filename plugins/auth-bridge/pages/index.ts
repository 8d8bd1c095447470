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
  /** Small, such as the id of a request. */
  readonly detail?: string
  /** A link; left out where its address is none that is safe to click on. */
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
  /** The provider's label. */
  readonly label: string
  /** Where the button leads, with GET: the provider's pages come next, and a form would not be let there. */
  readonly action: string
}

/** The sign-in page of the development provider. */
export interface ChoiceView {
  readonly state: string
  /** The form's target URL. */
  readonly action: string
}

const button = (href: string | undefined, label: string) =>
  href === undefined ? undefined : html`<p><a class="button main" href="${href}">${shown(label)}</a></p>`

/** As apps have them: `cursor://...`, `com.example.app:...` (RFC 8252, section 7.1). */
const APP_ADDRESS = /^(?:[a-z][a-z0-9+.-]*:\/\/|[a-z][a-z0-9+-]*\.[a-z0-9+.-]*:)/

/** Of apps, too: what browsers open themselves is no such address. */
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

/**
 * Each with the policy that it must be sent with. Send them with `Referrer-Policy: same-origin`: without a referrer browsers
 * say `Origin: null` of a form.
 */
export interface Pages {
  /** Posts `csrf` and `decision`, `allow` or `deny`, to its own URL. */
  consent(question: ConsentQuestion): Page
  /** Posts `csrf` and either `revoke`, the id of a grant, or `signOut`, `yes`, to its own URL. */
  account(view: AccountView): Page
  message(message: Message): Page
  /** One button, `Sign in with ...`: a link. */
  signIn(view: SignInView): Page
  /** Sends `state` and `user`, and `roles` of a user that is not listed, by GET. */
  chooseUser(view: ChoiceView): Page
  /**
   * In the place of a redirect after the consent form: browsers hold all redirects that follow a form to the form's policy,
   * up to those of the client's own site. Throws a TypeError where no page may lead there, such as to `javascript:`.
   */
  leave(uri: string): Page
}

export function createPages(settings: PageSettings): Pages {
  const layout = createLayout(settings)
  return {
    consent: question => writeConsent(question, settings, layout),
    account: view => writeAccount(view, layout),
    message: message => writeMessage(message, layout),
    signIn: view => writeSignIn(view, layout),
    chooseUser: view => writeChoice(view, settings, layout),
    leave: uri => writeLeave(uri, layout),
  }
}
