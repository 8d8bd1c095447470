// A browser without scripts: follows redirects between known servers, keeps cookies by host name and submits forms.
// Also a client that sends the forms of a login itself.
import { createHash, randomBytes } from 'node:crypto'
import { type Sent, send } from './rpc.ts'

export interface Page {
  readonly url: string
  readonly status: number
  readonly headers: Headers
  readonly html: string
  /** Hidden fields of the form. */
  readonly fields: Readonly<Record<string, string>>
}

/** A redirect that left the server, to the client. */
export interface Departure {
  readonly redirect: URL
}

const unescapeHtml = (text: string) => text.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))

function hiddenFields(html: string): Record<string, string> {
  const inputs = html.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)
  return Object.fromEntries([...inputs].map(([, name = '', value = '']) => [name, unescapeHtml(value)]))
}

export class Browser {
  readonly #homes: ReadonlySet<string>
  /** By host, path and name. Cookies ignore ports. */
  readonly cookies = new Map<string, { host: string; path: string; pair: string }>()
  /** All opened URLs. */
  readonly visited: URL[] = []

  /** `homes`: origins. A redirect to another origin is returned instead of followed. */
  constructor(...homes: readonly string[]) {
    this.#homes = new Set(homes.map(home => new URL(home).origin))
  }

  #remember({ hostname: host }: URL, headers: Headers) {
    for (const line of headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split(/;\s*/)
      const path = attributes.find(attribute => /^path=/i.test(attribute))?.slice('path='.length) ?? '/'
      const name = `${host} ${path} ${pair.split('=')[0]}`
      if (pair.endsWith('=')) this.cookies.delete(name)
      else this.cookies.set(name, { host, path, pair })
    }
  }

  async open(address: string | URL, init: Sent = {}): Promise<Page | Departure> {
    const url = new URL(address)
    if (!this.#homes.has(url.origin)) return { redirect: url }
    this.visited.push(url)
    const cookies = [...this.cookies.values()].filter(
      ({ host, path }) => host === url.hostname && url.pathname.startsWith(path),
    )
    const headers = { ...init.headers, Cookie: cookies.map(({ pair }) => pair).join('; ') }
    const { status, headers: received, text: html } = await send(url.href, { ...init, headers })
    this.#remember(url, received)
    const location = received.get('location')
    const refresh = /<meta http-equiv="refresh" content="0; url=([^"]*)"/.exec(html)?.[1]
    const next = location ?? (refresh === undefined ? null : unescapeHtml(refresh))
    if (next !== null) return this.open(new URL(next, url))
    return { url: url.href, status, headers: received, html, fields: hiddenFields(html) }
  }

  /** Opens a page of this server. Throws if a redirect leads elsewhere. */
  async page(address: string | URL, init?: Sent): Promise<Page> {
    const page = await this.open(address, init)
    if ('redirect' in page) throw new Error(`led to ${page.redirect}`)
    return page
  }

  /** Submits the form of a page, as a click does. */
  async click(page: Page, button: Readonly<Record<string, string>>): Promise<Page | Departure> {
    const body = String(new URLSearchParams({ ...page.fields, ...button }))
    const action = /<form method="post" action="([^"]*)"/.exec(page.html)?.[1]
    const target = action === undefined ? page.url : unescapeHtml(action)
    return this.open(target, { method: 'POST', body, headers: { ...FORM, Origin: new URL(page.url).origin } })
  }

  /** Opens an authorization URL and signs in as `user`, without a password, up to the consent page. */
  async signIn(address: string | URL, user: string): Promise<Page> {
    const { url, fields } = await this.page(address)
    return this.page(new URL(`callback?${new URLSearchParams({ ...fields, user })}`, url))
  }

  /** Opens an authorization URL, gives consent as `user`, and follows the redirects to the client. */
  async allow(address: string | URL, user: string): Promise<URL> {
    const next = await this.click(await this.signIn(address, user), { decision: 'allow' })
    if ('html' in next) throw new Error(`not allowed: ${next.status} ${next.html}`)
    return next.redirect
  }
}

const FORM = { 'Content-Type': 'application/x-www-form-urlencoded;charset=UTF-8' }

export const REDIRECT = 'http://127.0.0.1:9/callback'

/** A client that sends forms itself, so that every parameter can be changed or omitted. */
export class HandClient {
  readonly issuer: string
  readonly browser: Browser
  readonly verifier = randomBytes(32).toString('base64url')
  clientId = ''
  /** The secret of a confidential client. */
  #secret: string | undefined

  /** `homes`: other servers that its browser may visit. */
  constructor(issuer: string, homes: readonly string[] = []) {
    this.issuer = issuer
    this.browser = new Browser(issuer, ...homes)
  }

  register(metadata: object = {}): Promise<Response> {
    const body = JSON.stringify({
      client_name: 'Hand & Co',
      redirect_uris: [REDIRECT],
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      ...metadata,
    })
    return fetch(`${this.issuer}/register`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body,
    })
  }

  /** Registers and keeps the client id. */
  async start(metadata?: object): Promise<this> {
    const registered = (await (await this.register(metadata)).json()) as { client_id: string; client_secret?: string }
    this.clientId = registered.client_id
    this.#secret = registered.client_secret
    return this
  }

  authorizeUrl(parameters: Readonly<Record<string, string | undefined>> = {}): URL {
    const url = new URL(`${this.issuer}/authorize`)
    const all: Record<string, string | undefined> = {
      client_id: this.clientId,
      response_type: 'code',
      redirect_uri: REDIRECT,
      code_challenge: createHash('sha256').update(this.verifier).digest('base64url'),
      code_challenge_method: 'S256',
      state: 'a state',
      ...parameters,
    }
    for (const [name, value] of Object.entries(all)) if (value !== undefined) url.searchParams.set(name, value)
    return url
  }

  async token(form: Readonly<Record<string, string>>): Promise<TokenAnswer> {
    const secret = this.#secret === undefined ? {} : { client_secret: this.#secret }
    const body = String(new URLSearchParams({ client_id: this.clientId, ...secret, ...form }))
    const { text } = await send(`${this.issuer}/token`, { method: 'POST', body, headers: FORM })
    return JSON.parse(text) as TokenAnswer
  }

  /** The whole login: opens the URL, gives consent as `account`, exchanges the code. */
  async signIn(account: string, parameters: Readonly<Record<string, string>>): Promise<TokenAnswer> {
    const back = await this.browser.allow(this.authorizeUrl(parameters), account)
    const code = back.searchParams.get('code')
    if (code === null) throw new Error(`no code: ${back}`)
    return this.token(this.codeForm(code))
  }

  /** Parameters of the code exchange. */
  codeForm(code: string): Record<string, string> {
    return { grant_type: 'authorization_code', code, redirect_uri: REDIRECT, code_verifier: this.verifier }
  }
}

export interface TokenAnswer {
  readonly access_token: string
  readonly refresh_token?: string
  readonly scope?: string
  readonly error?: string
  readonly error_description?: string
}

export function readClaims(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
}
