// The information that attackers have: URLs of the host, tokens of some users, and ids of other users.
import { createHash } from 'node:crypto'
import type { TestIssuer } from '../support/test-issuer.ts'
import { inSeconds, signToken } from '../support/test-issuer.ts'

/** Who sends a request. Mallory has a token that permits little, Alice one that permits all; Steady attacks nobody. */
export type Identity = 'anonymous' | 'mallory' | 'alice' | 'steady'

/** Words that the host puts into what must be kept from others, each by what it marks. */
export interface Markers {
  /** What guarded routes and policies guard. */
  readonly guarded: string
  /** What belongs to one user. */
  readonly mallory: string
  readonly alice: string
  readonly steady: string
}

export type Marker = keyof Markers

/** Who may ever see what is marked so. */
export const MAY_SEE: Readonly<Record<Marker, readonly Identity[]>> = {
  guarded: ['alice'],
  mallory: ['mallory'],
  alice: ['alice'],
  steady: ['steady'],
}

export const AUDIENCE = 'https://hostile.example'

/** No attacker sends these: it could not be told from an echo. */
export function createMarkers(seed: number): Markers {
  const word = (name: string) => `kept-${createHash('sha256').update(`${seed} ${name}`).digest('hex').slice(0, 20)}`
  return { guarded: word('guarded'), mallory: word('mallory'), alice: word('alice'), steady: word('steady') }
}

/** A session of Alice, as a thief knows it. */
export interface Victim {
  readonly sessionId: string
  readonly path: string
  readonly eventIds: string[]
}

export interface Target {
  readonly url: string
  /** `host:port` of the URL. */
  readonly host: string
  readonly markers: Markers
  readonly issuer: TestIssuer
  /** The value of an Authorization header; undefined for anonymous. */
  authorization(who: Identity): string | undefined
  /** What Alice has open at the moment. */
  readonly victims: Victim[]
}

const SCOPES: Readonly<Record<Exclude<Identity, 'anonymous'>, string>> = {
  mallory: 'mcp.basic',
  alice: 'mcp.basic mcp.admin',
  steady: 'mcp.basic',
}

export function createTarget(url: string, issuer: TestIssuer, markers: Markers): Target {
  const [key] = issuer.keys
  if (!key) throw new Error('the issuer has no key')
  const tokens = new Map(
    Object.entries(SCOPES).map(([sub, scope]) => {
      const claims = issuer.claims(AUDIENCE, { sub, scope, client_id: `${sub}-client`, exp: inSeconds(7_200) })
      return [sub, `Bearer ${signToken(claims, key)}`]
    }),
  )
  return {
    url,
    host: new URL(url).host,
    markers,
    issuer,
    victims: [],
    authorization: who => tokens.get(who),
  }
}
