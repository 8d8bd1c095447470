// The provider of type `development`: a page of this host, on which anyone signs in as any user without a password.

import { asText } from '../browser/session.ts'
import type { FilledProvider } from '../options.ts'
import { kindOf } from '../upstream/settings.ts'
import { type SignedIn, type Upstream, UpstreamError } from '../upstream/upstream.ts'

type DevUser = NonNullable<FilledProvider['users']>[number]

const MAX_NAME = 100

const signedInAs = ({ id, name, roles, claims }: DevUser): SignedIn => ({
  person: {
    subject: id,
    ...(name !== undefined && { name }),
    groups: roles ?? [],
    claims: claims ?? {},
    tokenClaims: { ...(roles && { roles }), ...claims },
  },
  tokens: { accessToken: `development token of ${id}`, scopes: [] },
})

/** `page`: the URL of the sign-in page. */
export function createDevelopmentUpstream(
  { label, users = [{ id: 'dev' }] }: FilledProvider,
  page: () => string,
): Upstream {
  const userOf = (id: string) => users.find(user => user.id === id)
  return {
    label: label ?? kindOf('development').label,
    async begin({ state }) {
      return { url: `${page()}?${new URLSearchParams({ state })}`, underWay: { codeVerifier: '' } }
    },
    async finish({ searchParams }) {
      const id = asText(searchParams.get('user')).trim()
      if (id === '' || id.length > MAX_NAME) throw new UpstreamError('refused', 'no user was chosen')
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
