// The consent page.
import { html, type Markup, type Page, shown, shownHost } from '../../families/pages/index.ts'
import {
  type Destination,
  homepageOf,
  isUnverified,
  type Layout,
  nameOf,
  type PageSettings,
  readDestination,
  type ShownClient,
  type ShownPerson,
  shownUrl,
  writeItems,
  writePerson,
  writeScope,
} from './layout.ts'

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

export function writeConsent(question: ConsentQuestion, settings: PageSettings, layout: Layout): Page {
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
