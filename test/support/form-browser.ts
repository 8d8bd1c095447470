// A browser without scripts, over fetch: follows redirects, those of pages too, within the servers that it knows, keeps cookies by host name as
// browsers do, and clicks what a page has. And a client that sends the forms of a login by hand.
import { createHash, randomBytes } from 'node:crypto'

export interface Page {
  readonly url: string
  readonly status: number
  readonly headers: Headers
  readonly html: string
  /** Hidden fields of the page's form. */
  readonly fields: Readonly<Record<string, string>>
}

/** Where a redirect led out of the server: to the client. */
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
  /** By host, path and name, as each cookie says where it belongs; ports are none of their business. */
  readonly cookies = new Map<string, { host: string; path: string; pair: string }>()
  /** Every address that was opened. */
  readonly visited: URL[] = []

  /** Redirects that leave the homes, origins, are handed back instead of followed. */
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

  async open(address: string | URL, init: RequestInit = {}): Promise<Page | Departure> {
    const url = new URL(address)
    if (!this.#homes.has(url.origin)) return { redirect: url }
    this.visited.push(url)
    const cookies = [...this.cookies.values()].filter(
      ({ host, path }) => host === url.hostname && url.pathname.startsWith(path),
    )
    const headers = { ...init.headers, Cookie: cookies.map(({ pair }) => pair).join('; ') }
    const response = await fetch(url, { ...init, headers, redirect: 'manual' })
    this.#remember(url, response.headers)
    const location = response.headers.get('location')
    const html = await response.text()
    const refresh = /<meta http-equiv="refresh" content="0; url=([^"]*)"/.exec(html)?.[1]
    const next = location ?? (refresh === undefined ? null : unescapeHtml(refresh))
    if (next !== null) return this.open(new URL(next, url))
    return { url: url.href, status: response.status, headers: response.headers, html, fields: hiddenFields(html) }
  }

  /** Opens a page of this server. Throws where the way leads out of it. */
  async page(address: string | URL, init?: RequestInit): Promise<Page> {
    const page = await this.open(address, init)
    if ('redirect' in page) throw new Error(`led to ${page.redirect}`)
    return page
  }

  /** Submits the form of a page, as the browser of somebody who clicked does. */
  async click(page: Page, button: Readonly<Record<string, string>>): Promise<Page | Departure> {
    const body = new URLSearchParams({ ...page.fields, ...button })
    const action = /<form method="post" action="([^"]*)"/.exec(page.html)?.[1]
    const target = action === undefined ? page.url : unescapeHtml(action)
    return this.open(target, { method: 'POST', body, headers: { Origin: new URL(page.url).origin } })
  }

  /** Opens an authorization URL, allows the client as `account`, and goes where that leads: to the client. */
  async allow(address: string | URL, account: string): Promise<URL> {
    let next = await this.click(await this.page(address), { account })
    // Another user than before: the page between them signs the first one out.
    if ('html' in next && 'logout' in next.fields) next = await this.click(next, {})
    if ('html' in next) throw new Error(`not allowed: ${next.status} ${next.html}`)
    return next.redirect
  }
}

export const REDIRECT = 'http://127.0.0.1:9/callback'

interface ServerPaths {
  readonly authorization: string
  readonly token: string
  readonly registration: string
}

/** Of dev-auth-server. */
const DEV_PATHS: ServerPaths = { authorization: '/auth', token: '/token', registration: '/reg' }

/** A client that sends forms by hand: every parameter can be left out or bent. */
export class HandClient {
  readonly issuer: string
  readonly browser: Browser
  readonly #paths: ServerPaths
  readonly verifier = randomBytes(32).toString('base64url')
  clientId = ''
  /** Of a client that registered with a secret. */
  #secret: string | undefined

  /** `homes`: other servers that its browser goes through. */
  constructor(
    issuer: string,
    { paths = DEV_PATHS, homes = [] }: { paths?: ServerPaths; homes?: readonly string[] } = {},
  ) {
    this.issuer = issuer
    this.#paths = paths
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
    return fetch(`${this.issuer}${this.#paths.registration}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body,
    })
  }

  /** Registers and remembers who it is. */
  async start(metadata?: object): Promise<this> {
    const registered = (await (await this.register(metadata)).json()) as { client_id: string; client_secret?: string }
    this.clientId = registered.client_id
    this.#secret = registered.client_secret
    return this
  }

  authorizeUrl(parameters: Readonly<Record<string, string | undefined>> = {}): URL {
    const url = new URL(`${this.issuer}${this.#paths.authorization}`)
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
    const body = new URLSearchParams({ client_id: this.clientId, ...secret, ...form })
    return (await (await fetch(`${this.issuer}${this.#paths.token}`, { method: 'POST', body })).json()) as TokenAnswer
  }

  /** The whole way to tokens: opens, allows as `account`, exchanges. */
  async signIn(account: string, parameters: Readonly<Record<string, string>>): Promise<TokenAnswer> {
    const back = await this.browser.allow(this.authorizeUrl(parameters), account)
    const code = back.searchParams.get('code')
    if (code === null) throw new Error(`no code: ${back}`)
    return this.token(this.codeForm(code))
  }

  /** What a code is exchanged by. */
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

export function claimsOf(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
}
