// The account page, which lists clients with access and revokes it.
import {
  html,
  isUnverified,
  type Markup,
  nameOf,
  quoted,
  type ShownClient,
  type ShownPerson,
  shown,
  shownHost,
  shownUrl,
  writePerson,
} from './html.ts'
import type { Layout, Page } from './layout.ts'

export interface ShownGrant {
  readonly id: string
  readonly client: ShownClient
  readonly redirectHost: string
  readonly resources?: readonly string[]
  readonly scopes: readonly string[]
  readonly since: number
  readonly used: number | undefined
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
  if (client.isKnown) return 'Whoever runs this service'
  return client.documentHost === undefined ? 'Itself' : shownHost(client.documentHost)
}

const tokenField = (token: string) => html`<input type="hidden" name="csrf" value="${token}">`

const MAX_NAMED = 50

const writeNamed = (texts: readonly string[], write: (text: string) => string | Markup) =>
  html`${texts.slice(0, MAX_NAMED).map(text => html`<code>${write(text)}</code> `)}${texts.length > MAX_NAMED ? 'and more' : ''}`

function writeGrant(grant: ShownGrant, token: string): Markup {
  const { id, client, redirectHost, resources = [], scopes, since, used } = grant
  const name = nameOf(client)
  return html`<li>
<h3>${name === '' ? html`<span class="box">Client without a name</span>` : html`<span class="box"><bdi>${name}</bdi></span>`}</h3>
<dl>
<dt>Described by</dt><dd>${describerOf(client)}${isUnverified(client) ? ': nobody has verified it' : ''}</dd>
<dt>Access goes to</dt><dd><bdi>${shownHost(redirectHost)}</bdi></dd>
${resources.length === 0 ? undefined : html`<dt>It can use</dt><dd>${writeNamed(resources, shownUrl)}</dd>`}
<dt>Permissions</dt><dd>${scopes.length === 0 ? 'None by name' : writeNamed(scopes, scope => shown(scope))}</dd>
<dt>Allowed on</dt><dd>${writeDay(since)}</dd>
<dt>Last used</dt><dd>${writeDay(used)}</dd>
</dl>
<form method="post">
${tokenField(token)}
<button name="revoke" value="${id}">Remove access<span class="hidden"> of ${quoted(name === '' ? shown(id) : name)}</span></button>
</form>
</li>`
}

function writeGrants({ grants, token }: AccountView): Markup {
  if (grants.length === 0) return html`<p>No client acts for you.</p>`
  const rest = grants.length - MAX_GRANTS
  return html`<ul class="list grants">
${grants.slice(0, MAX_GRANTS).map(grant => writeGrant(grant, token))}
</ul>
${rest > 0 ? html`<p>And ${String(rest)} more: they are shown once some of these are removed.</p>` : undefined}`
}

export function writeAccount(view: AccountView, layout: Layout): Page {
  const { notice, person, signedInWith, token } = view
  return layout({
    title: 'Your clients',
    formAction: "'self'",
    content: html`<h1>Your clients</h1>
${notice === undefined ? undefined : html`<p class="note" role="status">${shown(notice, 300)}</p>`}
<p>You are ${writePerson(person)}, signed in with ${shown(signedInWith)}.</p>
<h2>These act for you</h2>
${writeGrants(view)}
<h2>This browser</h2>
<form method="post">
${tokenField(token)}
<button name="signOut" value="yes">Sign out</button>
</form>`,
  })
}
