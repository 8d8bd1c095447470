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
      description: 'Who calls, as routes and tools see it. Default: nobody, as without a token.',
      additionalProperties: false,
      required: ['subject'],
      properties: {
        subject: { type: 'string', minLength: 1, description: 'The user, as `sub` of a token names it.' },
        issuer: { type: 'string', description: 'Who issued that name.' },
        clientId: { type: 'string', description: 'The program that acts for the user.' },
        scopes: texts('What it may do.', SCOPE),
        roles: texts('What it is.'),
        claims: { type: 'object', default: {}, description: 'What else a token would say.' },
      },
    },
    maxConcurrent: {
      type: 'integer',
      minimum: 1,
      default: 100,
      description: `Requests of ${MODERN_REVISION} that may run at once, open subscriptions counted. Those of a session: sessions.maxCallsPerSession.`,
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
