// A user who signs in while nodes are killed, with a client that continues: pages are reloaded and forms are sent
// again.
import { setTimeout as pause } from 'node:timers/promises'
import { BridgeClient } from '../../support/bridge.ts'
import type { Departure, Page, TokenAnswer } from '../../support/form-browser.ts'
import { callAs, readUser } from '../../support/protected-host.ts'

const MAX_TRIES = 60
const PAUSE = 150

interface Counts {
  logins: number
  /** Logins that were begun again from the client. */
  begunAgain: number
  refreshes: number
  /** Refreshes whose answer was lost. */
  askedAgain: number
}

/** No node took it, or one died over it. */
const isLost = (error: unknown) => error instanceof TypeError || (error as { name?: string }).name === 'SyntaxError'

export class Person {
  readonly counts: Counts = { logins: 0, begunAgain: 0, refreshes: 0, askedAgain: 0 }
  /** How often a code was taken. */
  readonly codes = new Map<string, number>()
  /** Refreshes that were refused. */
  readonly signedOut: string[] = []
  readonly #sub: string
  readonly #url: string
  readonly #provider: string

  constructor(sub: string, url: string, provider: string) {
    this.#sub = sub
    this.#url = url
    this.#provider = provider
  }

  /** So many clients one after the other, each with as many refreshes. */
  async live(clients: number, refreshes: number): Promise<void> {
    for (let index = 0; index < clients; index++) {
      const client = new BridgeClient(`${this.#url}/auth`, `${this.#url}/mcp`, this.#provider)
      await this.#patiently(() => client.start())
      let tokens = await this.#logIn(client)
      for (let count = 0; count < refreshes; count++) {
        tokens = (await this.#refresh(client, tokens)) ?? (await this.#logIn(client))
        await this.#call(tokens)
      }
    }
  }

  /** Until a node answers with what is no 5xx. */
  async #patiently<Value>(act: () => Promise<Value>, lost = () => {}): Promise<Value> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await act()
      } catch (error) {
        if (!isLost(error) || attempt === MAX_TRIES) throw error
        lost()
        await pause(PAUSE)
      }
    }
  }

  async #open(act: () => Promise<Page | Departure>): Promise<Page | Departure> {
    return this.#patiently(async () => {
      const next = await act()
      if ('html' in next && next.status >= 500) throw new TypeError(`${next.status}`)
      return next
    })
  }

  async #logIn(client: BridgeClient): Promise<TokenAnswer> {
    for (let attempt = 1; attempt <= MAX_TRIES; attempt++) {
      const tokens = await this.#attempt(client)
      if (tokens) {
        this.counts.logins++
        return tokens
      }
      this.counts.begunAgain++
    }
    throw new Error(`${this.#sub} cannot sign in`)
  }

  /** Undefined where it has to be begun again. */
  async #attempt(client: BridgeClient): Promise<TokenAnswer | undefined> {
    const url = client.authorizeUrl({ resource: `${this.#url}/mcp`, scope: 'read', login_hint: this.#sub })
    const page = await this.#open(() => client.browser.open(url))
    if (!('html' in page) || page.status !== 200) return undefined
    if (!page.html.includes('value="allow"')) throw new Error(`a page without a question: ${page.html}`)
    const next = await this.#open(() => client.browser.click(page, { decision: 'allow' }))
    const code = 'redirect' in next ? next.redirect.searchParams.get('code') : null
    return code === null ? undefined : this.#exchange(client, code)
  }

  async #exchange(client: BridgeClient, code: string): Promise<TokenAnswer | undefined> {
    const answer = await this.#patiently(() => client.token(client.codeForm(code)))
    if (answer.error === undefined) this.codes.set(code, (this.codes.get(code) ?? 0) + 1)
    // Whoever has a code tries it again.
    const second = await this.#patiently(() => client.token(client.codeForm(code)))
    if (second.error === undefined) this.codes.set(code, (this.codes.get(code) ?? 0) + 1)
    // That ended what the first one gave, as it should: a client that behaves begins anew.
    return answer.error === undefined ? this.#again(client) : undefined
  }

  /** The same once more, with a code that is shown once. */
  async #again(client: BridgeClient): Promise<TokenAnswer | undefined> {
    const url = client.authorizeUrl({ resource: `${this.#url}/mcp`, scope: 'read', login_hint: this.#sub })
    const page = await this.#open(() => client.browser.open(url))
    if (!('html' in page) || page.status !== 200) return undefined
    const next = await this.#open(() => client.browser.click(page, { decision: 'allow' }))
    const code = 'redirect' in next ? next.redirect.searchParams.get('code') : null
    if (code === null) return undefined
    const answer = await this.#patiently(() => client.token(client.codeForm(code)))
    return answer.error === undefined ? answer : undefined
  }

  /** Undefined where it was refused. */
  async #refresh(client: BridgeClient, { refresh_token = '' }: TokenAnswer): Promise<TokenAnswer | undefined> {
    const answer = await this.#patiently(
      async () => {
        const given = await client.refresh(refresh_token)
        if (given.error === 'temporarily_unavailable' || given.error === 'server_error')
          throw new TypeError(given.error)
        return given
      },
      () => this.counts.askedAgain++,
    )
    if (answer.error === undefined) {
      this.counts.refreshes++
      return answer
    }
    this.signedOut.push(`${this.#sub}: ${answer.error_description}`)
    return undefined
  }

  async #call({ access_token }: TokenAnswer): Promise<void> {
    const answer = await this.#patiently(() => callAs(`${this.#url}/mcp`, access_token))
    if (answer.status === 200 && readUser(answer)?.subject !== this.#sub) throw new Error('somebody else answered')
  }
}
