// The consent page.
import {
  type Destination,
  homepageOf,
  html,
  isUnverified,
  type Layout,
  type Markup,
  nameOf,
  type Page,
  type PageSettings,
  readDestination,
  type ShownClient,
  type ShownPerson,
  shown,
  shownHost,
  shownUrl,
  writeItems,
  writePerson,
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
  redirect: 'You allowed this client before. Since then, the place that it sends you back to has changed.',
  document: 'You allowed this client before. Since then, what it says about itself has changed.',
} as const

const MEANINGS: ReadonlyMap<string, string> = new Map([
  ['openid', 'know that it is you'],
  ['profile', 'see your name'],
  ['email', 'see your e-mail address'],
  ['offline_access', 'act for you while you are away'],
])

function writeChange(changed: ConsentQuestion['changed']): Markup | undefined {
  if (changed === undefined) return undefined
  return html`<p class="note warn"><strong>Something changed.</strong> ${CHANGED[changed]} Allow it only if you know why.</p>`
}

function writeVouching({ client }: ConsentQuestion, service: string): Markup {
  if (client.isKnown) return html`<p class="small">Whoever runs ${service} set this client up.</p>`
  const { documentHost } = client
  if (documentHost !== undefined)
    return html`<p>It is described so by the website <strong>${shownHost(documentHost)}</strong>. Check that you know it.</p>`
  return html`<p class="note warn"><strong>Nobody has verified who made this client.</strong>
It registered itself, and anybody could have chosen its name.</p>`
}

function writeClient(question: ConsentQuestion, service: string): Markup {
  const { client } = question
  const name = nameOf(client)
  const homepage = homepageOf(client)
  return html`<h2>${isUnverified(client) ? 'The client calls itself' : 'The client'}</h2>
${name === '' ? html`<p>It gave no name.</p>` : html`<p class="box"><bdi>${name}</bdi></p>`}
${writeVouching(question, service)}
${homepage && html`<p class="small">Its page: ${homepage}</p>`}`
}

const EXPLAINED: Readonly<Record<Destination['kind'], string>> = {
  web: 'A website. Whoever runs it can then act for you.',
  computer: 'The client runs on this computer.',
  app: 'An app on this device that opens such addresses.',
  unknown: 'This is no address that we know how to go to.',
}

function writeDestination({ client, redirect }: ConsentQuestion): Markup {
  const { kind, place } = readDestination(redirect.uri)
  const isOpen = kind === 'web' && /^http:/i.test(redirect.uri.trim())
  const isBorrowed = !client.isKnown && client.documentHost !== undefined && (kind === 'computer' || kind === 'app')
  return html`<h2>Access is given to</h2>
<p class="box"><bdi>${place}</bdi><span class="small">${EXPLAINED[kind]}</span></p>
${isOpen ? html`<p class="note warn">The way there is not encrypted: others may read along.</p>` : undefined}
${isBorrowed ? html`<p class="small">Other programs on this computer could use the client's name, too.</p>` : undefined}`
}

function writeScope(scope: string): Markup {
  const meaning = MEANINGS.get(scope)
  return html`<code>${shown(scope)}</code>${meaning === undefined ? undefined : html` <span class="small">${meaning}</span>`}`
}

const MAX_WITHHELD = 10

function writeWithheld(scopes: readonly string[]): Markup | undefined {
  if (scopes.length === 0) return undefined
  const named = scopes
    .slice(0, MAX_WITHHELD)
    .map((scope, index) => html`${index > 0 ? ', ' : ''}<code>${shown(scope)}</code>`)
  const rest = scopes.length - MAX_WITHHELD
  return html`<p class="small">It also asked for ${named}${rest > 0 ? ` and ${rest} more` : ''}, which your account may not have.</p>`
}

function writeAccess({ resources, scopes, withheld = [] }: ConsentQuestion): Markup {
  return html`<h2>It can use, as you</h2>
${resources.length === 0 ? html`<p>Nothing by name.</p>` : writeItems(resources, url => html`<code>${shownUrl(url)}</code>`)}
${scopes.length === 0 ? undefined : html`<h2>With these permissions</h2>${writeItems(scopes, writeScope)}`}
${writeWithheld(withheld)}`
}

/** Deny comes first, because Enter submits with the first button (HTML, implicit submission). */
function writeForm({ client, remembered, token }: ConsentQuestion, base: string): Markup {
  return html`${
    isUnverified(client)
      ? html`<p class="note warn">Allow it only if you have just connected a program that you trust. If you are
not sure, deny.</p>`
      : undefined
  }
<form method="post">
<input type="hidden" name="csrf" value="${token}">
<div class="choice">
<button name="decision" value="deny">Deny</button>
<button class="main" name="decision" value="allow">Allow</button>
</div>
</form>
<p class="small">${remembered ? 'If you allow it, this browser is not asked again.' : 'You will be asked again next time.'}
You can take it back on the page of <a href="${base}/account">your clients</a>.</p>`
}

const writeDetails = ({ client, redirect }: ConsentQuestion): Markup => html`<details>
<summary>Technical details</summary>
<dl>
<dt>Client id</dt><dd><code>${shownUrl(client.id)}</code></dd>
<dt>Redirect URI</dt><dd><code>${shownUrl(redirect.uri)}</code></dd>
</dl>
</details>`

export function writeConsent(question: ConsentQuestion, { page, label, base }: PageSettings, layout: Layout): Page {
  const { changed, person } = question
  const service = shown(page.name)
  return layout({
    title: 'Allow this client?',
    formAction: "'self'",
    content: html`<h1>Allow this client to act for you?</h1>
${writeChange(changed)}
<p>You are ${writePerson(person)}, signed in with ${shown(label)}.</p>
${writeClient(question, service)}
${writeDestination(question)}
${writeAccess(question)}
${writeForm(question, base)}
${writeDetails(question)}`,
  })
}
