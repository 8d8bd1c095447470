// Stores consents with their grant, user, client and login.
import type { Client } from 'oidc-provider'
import { sameRedirect } from '../clients/redirects.ts'
import { digest, grantedAt, type Records } from '../records.ts'

export interface Consent {
  readonly grantId: string
  readonly subject: string
  readonly login: string
  readonly client: { readonly id: string; readonly name?: string; readonly documentHost?: string }
  readonly redirectUri: string
  readonly document?: string
  readonly resources: readonly string[]
  readonly scopes: readonly string[]
  readonly since: number
  readonly used?: number
}

export type Changed = 'redirect' | 'document'

const MOST = 200

const placeOf = (grantId: string) => grantedAt('consent', grantId)
const listOf = (subject: string) => grantedAt('consents of', subject)

/** Metadata that consent depends on: excludes keys and images. */
export function digestOfDocument(client: Client): string | undefined {
  if (!client.clientIdMetadataDocument) return undefined
  const { client_name, client_uri, redirect_uris, grant_types, token_endpoint_auth_method } = client.metadata()
  return digest(JSON.stringify([client_name, client_uri, redirect_uris, grant_types, token_endpoint_auth_method]))
}

export function changedSince(consent: Consent, client: Client, redirectUri: string): Changed | undefined {
  if (consent.document !== digestOfDocument(client)) return 'document'
  return sameRedirect(consent.redirectUri, redirectUri) ? undefined : 'redirect'
}

export class Consents {
  readonly #records: Records
  readonly #ttl: number

  constructor(records: Records, ttl: number) {
    this.#records = records
    this.#ttl = ttl
  }

  find(grantId: string): Promise<Consent | undefined> {
    return this.#records.read(placeOf(grantId))
  }

  async keep(consent: Consent): Promise<void> {
    await this.#records.write(placeOf(consent.grantId), consent, this.#ttl)
    await this.#records.join(listOf(consent.subject), consent.grantId, this.#ttl, MOST)
  }

  async moveTo(grantId: string, login: string): Promise<void> {
    await this.#records.update<Consent>(placeOf(grantId), this.#ttl, consent =>
      consent.login === login ? undefined : { ...consent, login },
    )
  }

  async used(grantId: string): Promise<void> {
    await this.#records.update<Consent>(placeOf(grantId), this.#ttl, consent => ({ ...consent, used: Date.now() }))
  }

  async of(subject: string): Promise<readonly Consent[]> {
    const ids = await this.#records.members(listOf(subject))
    const found = await Promise.all(ids.map(id => this.find(id)))
    return found.flatMap(consent => (consent?.subject === subject ? [consent] : [])).reverse()
  }

  async forget({ grantId, subject }: Pick<Consent, 'grantId' | 'subject'>): Promise<void> {
    await this.#records.delete(placeOf(grantId))
    await this.#records.leave(listOf(subject), grantId)
  }
}
