// The provider of type `development`: anyone can sign in as any user without a password, so it works only on this
// machine.

import { isLoopback } from '../../../core/auth.ts'
import { HostError } from '../../../core/index.ts'
import type { HostContext } from '../../../core/plugin.ts'
import { asText } from '../../families/credentials/index.ts'
import type { FilledProvider } from '../options.ts'
import { kindOf } from '../upstream/settings.ts'
import { type SignedIn, type Upstream, UpstreamError } from '../upstream/upstream.ts'

/** Throws for a remote or tunnelled request, and for a host name that is not loopback (DNS rebinding). */
export function refuseForeignRequest({ req }: HostContext): void {
  // An embedding application (`Host.callback`) can own the server and listen on all addresses.
  const from = req.socket.remoteAddress?.replace(/^::ffff:/i, '') ?? ''
  if (!isLoopback(from)) throw new HostError('hostNotAllowed', { detail: `the request comes from ${from}` })
  const { host: named, ':authority': authority = named, 'x-forwarded-host': forwarded } = req.headers
  for (const host of [named ?? authority ?? '', authority ?? '', forwarded ?? 'localhost']) {
    const address = `http://${host}`
    if (!URL.canParse(address) || !isLoopback(new URL(address).hostname))
      throw new HostError('hostNotAllowed', { detail: String(host) })
  }
}

const MAX_NAME = 100

const signedInAs = ({ id, name, roles, claims }: NonNullable<FilledProvider['users']>[number]): SignedIn => ({
  person: {
    subject: id,
    ...(name !== undefined && { name }),
    groups: roles ?? [],
    claims: claims ?? {},
    tokenClaims: { ...(roles && { roles }), ...claims },
  },
  tokens: { accessToken: `development token of ${id}`, scopes: [] },
})

export function createDevelopmentUpstream(
  { label, users = [{ id: 'dev' }] }: FilledProvider,
  page: () => string,
): Upstream {
  const userOf = (id: string) => users.find(user => user.id === id)
  return {
    label: label ?? kindOf('development').label,
    async startLogin({ state }) {
      return { url: `${page()}?${new URLSearchParams({ state })}`, underWay: { codeVerifier: '' } }
    },
    async finish({ searchParams }) {
      const id = asText(searchParams.get('user')).trim()
      if (id === '' || id.length > MAX_NAME) throw new UpstreamError('refused', 'no user was selected')
      const roles = asText(searchParams.get('roles'))
        .split(/[\s,]+/)
        .filter(Boolean)
      return signedInAs(userOf(id) ?? { id, roles })
    },
    async renew(last) {
      const user = userOf(last.person.subject)
      return user ? signedInAs(user) : last
    },
    exchange: async tokens => tokens,
    async revoke() {},
  }
}
