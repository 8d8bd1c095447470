// The options of stdio: the client has no token, so the config names its user.
import { SCOPE } from '../../core/auth.ts'
import type { User } from '../../core/index.ts'
import type { OptionsOf } from '../../core/plugin.ts'
import { MODERN_REVISION } from '../../core/transport.ts'

const texts = <const D extends string>(description: D, items: { readonly pattern?: string } = {}) =>
  ({ type: 'array', items: { type: 'string', ...items }, default: [], description }) as const

export const OPTIONS = {
  type: 'object',
  description: 'Newline-delimited JSON over stdin and stdout, for `mcp-host stdio`.',
  additionalProperties: false,
  properties: {
    user: {
      type: 'object',
      title: 'StdioUser',
      description: 'The caller: { subject, issuer, clientId, scopes, roles, claims }. Default: an anonymous caller.',
      additionalProperties: false,
      required: ['subject'],
      properties: {
        subject: { type: 'string', minLength: 1, description: 'Subject of the user, as `sub` of a token.' },
        issuer: { type: 'string', description: 'Issuer of the subject.' },
        clientId: { type: 'string', description: 'Client id.' },
        scopes: texts('Scopes of the caller.', SCOPE),
        roles: texts('Roles of the caller.'),
        claims: { type: 'object', default: {}, description: 'Further claims.' },
      },
    },
    maxConcurrent: {
      type: 'integer',
      minimum: 1,
      default: 100,
      description: `Maximum concurrent requests of ${MODERN_REVISION}, including open subscriptions. Further requests get -32600.`,
    },
  },
} as const

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
