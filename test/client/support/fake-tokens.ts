// The tokens of a fake authorization server: what each is good for, and the families that rotation and the detection
// of reuse are about.
import { randomBytes } from 'node:crypto'

/** What a grant allows. */
export interface Grant {
  readonly clientId: string
  readonly subject: string
  readonly scope: string | undefined
  readonly resource: string | undefined
  /** The thumbprint of the DPoP key that the tokens are bound to. */
  readonly jkt?: string | undefined
}

export interface AccessToken extends Grant {
  readonly token: string
  readonly family: Family
  /** False: expired or revoked. */
  active: boolean
}

/** All that came from one login. */
export interface Family {
  readonly grant: Grant
  /** The refresh token that is good now. */
  current: string | undefined
  revoked: boolean
}

export interface TokenBook {
  /** Every access token that was ever issued, oldest first. */
  readonly issued: AccessToken[]
  /** How often a refresh token was used that another had replaced; each killed its family. */
  readonly reuses: number
  open(grant: Grant): Family
  access(family: Family, scope?: string): AccessToken
  /** A refresh token for a family; replaces the one it had. */
  refresh(family: Family): string
  /** The family of a refresh token; undefined for one that is not good. One that was replaced kills its family. */
  redeem(refreshToken: string): Family | undefined
  find(accessToken: string): AccessToken | undefined
  /** Ends all tokens of a family. */
  end(family: Family): void
  /** Ends a token of either kind, and its family. */
  revoke(token: string): void
  /** Ends every access token; the refresh tokens stay good. */
  expireAll(): void
}

const random = (kind: string) => `${kind}-${randomBytes(24).toString('base64url')}`

/** A book that gives every secret it makes to `keep`. */
export function createTokenBook(keep: (secret: string) => string): TokenBook {
  const issued: AccessToken[] = []
  const families = new Map<string, Family>()
  let reuses = 0

  function end(family: Family) {
    family.revoked = true
    for (const token of issued) if (token.family === family) token.active = false
  }

  return {
    issued,
    end,
    get reuses() {
      return reuses
    },
    open: grant => ({ grant, current: undefined, revoked: false }),
    access(family, scope = family.grant.scope) {
      const token = { ...family.grant, scope, token: keep(random('at')), family, active: true }
      issued.push(token)
      return token
    },
    refresh(family) {
      family.current = keep(random('rt'))
      families.set(family.current, family)
      return family.current
    },
    redeem(refreshToken) {
      const family = families.get(refreshToken)
      if (family === undefined || family.revoked) return undefined
      if (family.current === refreshToken) return family
      reuses++
      end(family)
      return undefined
    },
    find: accessToken => issued.find(({ token }) => token === accessToken),
    revoke(token) {
      const family = families.get(token) ?? issued.find(one => one.token === token)?.family
      if (family) end(family)
    },
    expireAll() {
      for (const token of issued) token.active = false
    },
  }
}
