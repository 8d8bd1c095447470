// The options of stdio: the client has no token, so the config names its user.

import { SCOPE } from '../../core/auth.ts'
import type { User } from '../../core/index.ts'
import { closed, count, list, text, words } from '../../core/internal.ts'
import type { OptionsOf } from '../../core/plugin.ts'
import { MODERN_REVISION } from '../../core/transport.ts'

const texts = <const D extends string>(description: D, items: { readonly pattern?: string } = {}) =>
  list({ type: 'string', ...items }, description, { default: [] })

export const OPTIONS = closed(
  {
    user: closed(
      {
        subject: text('Subject of the user, as `sub` of a token.'),
        issuer: words('Issuer of the subject.'),
        clientId: words('Client id.'),
        scopes: texts('Scopes of the caller.', SCOPE),
        roles: texts('Roles of the caller.'),
        claims: { type: 'object', default: {}, description: 'Further claims.' },
      },
      {
        title: 'StdioUser',
        description: 'The caller: { subject, issuer, clientId, scopes, roles, claims }. Default: an anonymous caller.',
        required: ['subject'],
      },
    ),
    maxConcurrent: count(
      `Maximum concurrent requests of ${MODERN_REVISION}, including open subscriptions. Further requests get -32600.`,
      { default: 100 },
    ),
  },
  { description: 'Newline-delimited JSON over stdin and stdout, for `mcp-host stdio`.' },
)

export interface TransportStdioOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledTransportStdio extends OptionsOf<typeof OPTIONS, true> {}

export function userOf({ user }: TransportStdioOptions): User | undefined {
  if (!user) return undefined
  const { subject, issuer, clientId, scopes = [], roles = [], claims = {} } = user
  return {
    subject,
    ...(issuer !== undefined && { issuer }),
    ...(clientId !== undefined && { clientId }),
    scopes: [...scopes],
    roles: [...roles],
    claims: { ...claims },
  }
}
