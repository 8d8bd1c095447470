// Options of auth-bridge with JSON Schema, and presets of identity providers.
import { ENDPOINT_URL_PATTERN, HTTP_URL_PATTERN, ISSUER_URL, SCOPE } from '../../core/auth.ts'
import { DURATION_PATTERN, type OptionsOf } from '../../core/plugin.ts'

/** Provider types with special behaviour, and the generic `oidc` and `oauth`. */
export const PROVIDERS = [
  'entra',
  'okta',
  'google',
  'github',
  'auth0',
  'keycloak',
  'oidc',
  'oauth',
  'development',
] as const

const text = { type: 'string', minLength: 1 } as const
export const texts = { type: 'array', items: text, minItems: 1, uniqueItems: true } as const
/** At least two labels: an address or pattern would match no user. */
const domain = {
  type: 'string',
  pattern: '^[^\\s@*/:,.]+(?:\\.[^\\s@*/:,.]+)+$',
  patternErrorMessage: 'a domain such as acme.example, without @ and *; a subdomain is another domain',
} as const
const domains = { ...texts, items: domain } as const
const url = <const D extends string>(description: D) =>
  ({ type: 'string', pattern: ENDPOINT_URL_PATTERN, description }) as const
const issuerUrl = <const D extends string>(description: D) => ({ type: 'string', ...ISSUER_URL, description }) as const
const LONG_ENOUGH = {
  pattern: '^(?=.*[1-9])(?!0*\\d{1,3}(?:\\.\\d+)?ms$)(?!0+\\.\\d+s$)\\d',
  patternErrorMessage: "a duration such as '30s', or milliseconds; at least 1s",
} as const
const duration = <const T extends string, const D extends string>(standard: T, description: D) =>
  ({
    type: ['string', 'number'],
    pattern: DURATION_PATTERN,
    minimum: 1_000,
    allOf: [LONG_ENOUGH],
    default: standard,
    description,
  }) as const
const several = <const D extends string>(description: D) => ({ anyOf: [text, texts], description }) as const

const object = <const T extends string, const D extends string, const More extends object = Record<never, never>>(
  title: T,
  description: D,
  more = {} as More,
) => ({ ...({ title, type: 'object', additionalProperties: false } as const), ...more, description })

/** Options of the development provider. */
export const DEVELOPMENT_OPTIONS = {
  users: {
    type: 'array',
    minItems: 1,
    description:
      'Users to choose from on the sign-in page, where any other name can be entered. Default: one user, `dev`.',
    items: {
      ...object('DevUser', 'A user of the development provider.', { required: ['id'] }),
      properties: {
        id: { ...text, description: 'The `sub` of tokens.' },
        name: { ...text, description: 'Shown on pages. Default: the id.' },
        roles: { type: 'array', items: text, description: 'The `roles` of tokens.' },
        claims: { type: 'object', description: 'Further claims of tokens.' },
      },
    },
  },
  resources: {
    ...texts,
    items: { ...texts.items, pattern: HTTP_URL_PATTERN },
    description: 'Resources that tokens are issued for. Default: the resources of the routes.',
  },
  keepIn: {
    ...text,
    description:
      'A file that keeps keys and logins across restarts. Default: none; `mcp-host dev` keeps .mcp-host/dev-auth-server.json.',
  },
} as const

const provider = {
  ...object('BridgeProvider', "The company's identity provider, and what it knows this host by.", {
    required: ['type'],
  }),
  properties: {
    type: {
      enum: PROVIDERS,
      description: 'The identity provider; oidc or oauth for all others; development for tests on this machine.',
    },
    clientId: {
      ...text,
      description: 'The id of the application that you registered there. Required except for development.',
    },
    clientSecret: { ...text, writeOnly: true, description: 'Its secret.' },
    tenant: { ...text, description: 'entra: the id of the directory (tenant), not a domain.' },
    domain: { ...text, description: 'okta and auth0: the host name, such as acme.okta.com.' },
    issuer: issuerUrl(
      'oidc and keycloak: the issuer, exactly as it names itself. okta: of a custom authorization server. entra: of a national cloud. auth0: of a custom domain.',
    ),
    endpoints: {
      ...object('BridgeEndpoints', 'oauth: where everything is. github: of an own GitHub Enterprise Server.', {
        required: ['authorization', 'token', 'userinfo'],
      }),
      properties: {
        authorization: url('Where browsers are sent.'),
        token: url('Where codes become tokens.'),
        userinfo: url('Answers a JSON object that says who a token is of.'),
        revocation: url('Where tokens are revoked (RFC 7009).'),
      },
    },
    label: { ...text, maxLength: 40, description: 'What pages call it. Default: the name of the type.' },
    scopes: {
      ...texts,
      items: { ...text, ...SCOPE },
      description: 'Scopes to request from the provider. Default: those required for sign-in.',
    },
    parameters: {
      type: 'object',
      additionalProperties: { type: 'string' },
      description: 'Further parameters of the authorization request there, such as { hd: "acme.example" }.',
    },
    authMethod: {
      enum: ['client_secret_basic', 'client_secret_post', 'none'],
      description: 'How the secret is shown. Default: what the provider says it takes.',
    },
    claims: {
      ...object('BridgeClaims', 'Where the provider says what of a person. A path is a name, or names joined by dots.'),
      properties: {
        subject: several('Never another person. Default: sub; entra: oid; github and oauth: id.'),
        name: several('For people. Default: name, then preferred_username and login.'),
        email: several('Default: email.'),
        groups: several('Default: groups; keycloak: groups and realm_access.roles.'),
      },
    },
    trustEmail: {
      type: 'boolean',
      description: 'An address counts without email_verified. Only where the provider lets nobody choose their own.',
    },
    exchange: {
      enum: ['refresh', 'token-exchange'],
      description:
        'How ctx.upstreamToken({ scope }) gets other scopes: by a refresh, or by RFC 8693. The default depends on the type.',
    },
    ...DEVELOPMENT_OPTIONS,
  },
} as const

const rule = {
  ...object('PersonRule', 'What must be true of a person; all of it. Of a list one is enough.', { minProperties: 1 }),
  properties: {
    group: several('Member of it, as the provider names it: a name or an id.'),
    domain: { anyOf: [domain, domains], description: 'Domain of the verified e-mail address.' },
    subject: several('This person.'),
    claim: {
      type: 'object',
      additionalProperties: { anyOf: [{ type: ['string', 'number', 'boolean'] }, texts] },
      description: 'Claims that have this value, or one of these.',
    },
  },
} as const

export const optionsSchema = {
  type: 'object',
  description:
    "Makes this host the authorization server of its MCP clients, who sign in with the company's identity provider.",
  additionalProperties: false,
  required: ['provider', 'allow'],
  properties: {
    provider,
    allow: {
      ...object('BridgeAllow', 'Who may sign in at all: whoever fits one of them. Nobody else gets a token.', {
        minProperties: 1,
      }),
      properties: {
        domains: { ...domains, description: 'Domains of verified e-mail addresses.' },
        groups: { ...texts, description: 'Members of these, as the provider names them: names or ids.' },
        subjects: { ...texts, description: 'These people, by their subject.' },
        everyone: { const: true, description: 'Whoever the provider lets sign in to the application.' },
      },
    },
    scopes: {
      type: 'object',
      propertyNames: SCOPE,
      additionalProperties: rule,
      default: {},
      description: 'Scopes that only some may have, and who. What is not named here whoever signs in may have.',
    },
    roles: {
      type: 'object',
      additionalProperties: rule,
      default: {},
      description: 'Roles in our tokens, and who has them.',
    },
    clients: {
      ...object('BridgeClients', 'Which MCP clients may ask people to sign in.', { default: {} }),
      properties: {
        metadataDocuments: {
          type: 'boolean',
          default: true,
          description: 'Clients that are named by the URL of their metadata document.',
        },
        registration: { type: 'boolean', default: true, description: 'Clients that register themselves (RFC 7591).' },
        redirects: {
          ...texts,
          default: ['http://127.0.0.1:*/**', 'http://[::1]:*/**', 'http://localhost:*/**'],
          description:
            'Allowed redirect URIs. * stands for any port or path segment, ** for the rest of the path, ?* for any query. A host is never a pattern.',
        },
        fixed: {
          type: 'array',
          default: [],
          description: 'Clients that you know, with an id of their own.',
          items: {
            ...object('BridgeFixedClient', 'A client that you know.', { required: ['clientId', 'redirects'] }),
            properties: {
              clientId: { ...text, description: 'Its id.' },
              clientSecret: {
                ...text,
                minLength: 32,
                writeOnly: true,
                description: 'Its secret; default: a public client.',
              },
              authMethod: {
                enum: ['client_secret_basic', 'client_secret_post', 'private_key_jwt'],
                description:
                  'How it shows who it is. Default: client_secret_basic, or private_key_jwt where it has keys.',
              },
              keys: {
                type: 'array',
                items: { type: 'object' },
                minItems: 1,
                description: 'Its public keys as JWKs, in the place of a secret.',
              },
              name: { ...text, description: 'On the consent page.' },
              redirects: { ...texts, description: 'Its redirect URIs, exactly.' },
            },
          },
        },
      },
    },
    page: {
      ...object('BridgePage', 'How the pages look.', { default: {} }),
      properties: {
        name: {
          ...text,
          maxLength: 60,
          description: "What people know this service as. Default: the server's name.",
        },
        logo: { ...text, description: 'A file: SVG, PNG, JPEG or WebP, at most 256 kB.' },
        support: { ...text, maxLength: 200, description: 'Whom to ask: an https or mailto URL, or a sentence.' },
      },
    },
    path: {
      type: 'string',
      pattern: '^/[A-Za-z0-9._~-]+(?:/[A-Za-z0-9._~-]+)*$',
      default: '/auth',
      description: 'Where it is; the issuer is this path under http.publicUrl.',
    },
    accessToken: duration('10m', 'How long access tokens live. Who was removed at the provider is refused no later.'),
    refreshToken: duration('30d', 'How long a client that does not come back stays signed in.'),
    login: duration('90d', 'After this long people sign in again, whatever clients did.'),
    session: duration('12h', 'How long a browser is not asked for the login again.'),
    refreshGrace: duration('60s', 'How long a refresh token that was used still works, for refreshes side by side.'),
    signingKeys: {
      ...text,
      description:
        'A PEM file with EC P-256 private keys: the first signs, all verify. Default: derived from `secrets`, the same on every node.',
    },
    trustedIssuers: {
      type: 'array',
      default: [],
      description:
        'Whose identity assertions (ID-JAG) are taken at the token endpoint: enterprise-managed authorization.',
      items: {
        ...object('BridgeTrustedIssuer', 'An issuer of identity assertions.', { required: ['issuer'] }),
        properties: {
          issuer: issuerUrl('The exact iss of its assertions.'),
          jwksUri: url('Where its keys are. Default: found by discovery.'),
          tenant: {
            ...text,
            description:
              'Of an issuer with several: the one whose assertions are taken. Default: assertions without one.',
          },
        },
      },
    },
  },
} as const

export interface AuthBridgeOptions extends OptionsOf<typeof optionsSchema> {}
export interface FilledAuthBridge extends OptionsOf<typeof optionsSchema, true> {}
/** Identity provider settings, for example from `entra(...)`. */
export type ProviderOptions = AuthBridgeOptions['provider']
export type FilledProvider = FilledAuthBridge['provider']
/** Conditions on a user. */
export type PersonRule = NonNullable<AuthBridgeOptions['scopes']>[string]

export const isDevelopment = ({ provider: { type } }: FilledAuthBridge): boolean => type === 'development'
