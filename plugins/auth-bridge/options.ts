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
/** A domain has at least two labels: an address or pattern would match no user. */
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
      'Users to choose from on the sign-in page, or any other name: { id, name, roles, claims }. Default: one user, `dev`.',
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
  ...object('BridgeProvider', 'The identity provider of the company, with the client credentials of this host.', {
    required: ['type'],
  }),
  properties: {
    type: {
      enum: PROVIDERS,
      description: 'The identity provider. oidc or oauth for other providers; development for tests on this machine.',
    },
    clientId: {
      ...text,
      description: 'Id of the application at the provider. Required except for development.',
    },
    clientSecret: { ...text, writeOnly: true, description: 'The client secret.' },
    tenant: { ...text, description: 'entra: the id of the directory (tenant), not a domain.' },
    domain: { ...text, description: 'okta and auth0: the host name, such as acme.okta.com.' },
    issuer: issuerUrl(
      'oidc and keycloak: the exact issuer. okta: issuer of a custom authorization server. entra: of a national cloud. auth0: of a custom domain.',
    ),
    endpoints: {
      ...object(
        'BridgeEndpoints',
        'oauth: endpoints of the provider. github: endpoints of a GitHub Enterprise Server.',
        {
          required: ['authorization', 'token', 'userinfo'],
        },
      ),
      properties: {
        authorization: url('Authorization endpoint.'),
        token: url('Token endpoint.'),
        userinfo: url('Userinfo endpoint: returns a JSON object with the user of a token.'),
        revocation: url('Revocation endpoint (RFC 7009).'),
      },
    },
    label: { ...text, maxLength: 40, description: 'Name of the provider on pages. Default: by type.' },
    scopes: {
      ...texts,
      items: { ...text, ...SCOPE },
      description: 'Scopes to request from the provider. Default: those required for sign-in.',
    },
    parameters: {
      type: 'object',
      additionalProperties: { type: 'string' },
      description: 'Additional parameters of the authorization request, such as { hd: "acme.example" }.',
    },
    authMethod: {
      enum: ['client_secret_basic', 'client_secret_post', 'none'],
      description: 'Client authentication method. Default: from the metadata of the provider.',
    },
    claims: {
      ...object('BridgeClaims', 'Claim paths of the provider. A path is a name, or names joined by dots.'),
      properties: {
        subject: several('Unique user id. Default: sub; entra: oid; github and oauth: id.'),
        name: several('Display name. Default: name, then preferred_username and login.'),
        email: several('Email address. Default: email.'),
        groups: several('Groups. Default: groups; keycloak: groups and realm_access.roles.'),
      },
    },
    trustEmail: {
      type: 'boolean',
      description: 'Accepts addresses without email_verified. Set it only if users cannot choose their own address.',
    },
    exchange: {
      enum: ['refresh', 'token-exchange'],
      description:
        'Method of ctx.upstreamToken({ scope }) for other scopes: refresh or token exchange (RFC 8693). The default depends on the type.',
    },
    ...DEVELOPMENT_OPTIONS,
  },
} as const

const rule = {
  ...object('PersonRule', 'Conditions for a user. All of them must match. In a list, one match is enough.', {
    minProperties: 1,
  }),
  properties: {
    group: several('Group, as the provider returns it: a name or an id.'),
    domain: { anyOf: [domain, domains], description: 'Domain of the verified email address.' },
    subject: several('Subject of the user.'),
    claim: {
      type: 'object',
      additionalProperties: { anyOf: [{ type: ['string', 'number', 'boolean'] }, texts] },
      description: 'Claims with this value, or one of these values.',
    },
  },
} as const

const scopeRule = {
  ...object('ScopeRule', 'The title of a scope, and conditions for a user, all of which must match.', {
    minProperties: 1,
  }),
  properties: {
    title: { ...text, maxLength: 60, description: 'Title on the consent page, such as Change orders.' },
    ...rule.properties,
  },
} as const

export const optionsSchema = {
  type: 'object',
  description:
    'Makes this host the authorization server for its MCP clients. Users sign in with the identity provider of the company.',
  additionalProperties: false,
  required: ['provider', 'allow'],
  properties: {
    provider,
    allow: {
      ...object('BridgeAllow', 'Sign-in rules. A user who matches any entry can sign in.', {
        minProperties: 1,
      }),
      properties: {
        domains: { ...domains, description: 'Domains of verified email addresses.' },
        groups: { ...texts, description: 'Groups, as the provider returns them: names or ids.' },
        subjects: { ...texts, description: 'Users, by subject.' },
        everyone: { const: true, description: 'Every user whom the provider admits to the application.' },
      },
    },
    scopes: {
      type: 'object',
      propertyNames: SCOPE,
      additionalProperties: scopeRule,
      default: {},
      description:
        'Scopes with a title, a rule for users, or both. Scopes without a rule are available to every signed-in user.',
    },
    roles: {
      type: 'object',
      additionalProperties: rule,
      default: {},
      description: 'Roles in host-issued tokens, with the rule for users.',
    },
    clients: {
      ...object('BridgeClients', 'Allowed MCP clients.', { default: {} }),
      properties: {
        metadataDocuments: {
          type: 'boolean',
          default: true,
          description: 'Accepts clients with a metadata document.',
        },
        registration: { type: 'boolean', default: true, description: 'Accepts dynamic registration (RFC 7591).' },
        redirects: {
          ...texts,
          default: ['http://127.0.0.1:*/**', 'http://[::1]:*/**', 'http://localhost:*/**'],
          description:
            'Allowed redirect URIs. * matches a port or path segment, ** the rest of the path, ?* any query. Hosts cannot contain wildcards.',
        },
        fixed: {
          type: 'array',
          default: [],
          description:
            'Registered clients: `clientId`, `redirects`, `name`, and `clientSecret` (32 characters or more) with `authMethod`, or `keys` (public JWKs for private_key_jwt).',
          items: {
            ...object('BridgeFixedClient', 'A registered client.', { required: ['clientId', 'redirects'] }),
            properties: {
              clientId: { ...text, description: 'Client id.' },
              clientSecret: {
                ...text,
                minLength: 32,
                writeOnly: true,
                description: 'Client secret. Default: a public client.',
              },
              authMethod: {
                enum: ['client_secret_basic', 'client_secret_post', 'private_key_jwt'],
                description:
                  'Client authentication method. Default: client_secret_basic, or private_key_jwt with keys.',
              },
              keys: {
                type: 'array',
                items: { type: 'object' },
                minItems: 1,
                description: 'Public keys of the client as JWKs, in place of a secret.',
              },
              name: { ...text, description: 'Name on the consent page.' },
              redirects: { ...texts, description: 'Exact redirect URIs.' },
            },
          },
        },
      },
    },
    page: {
      ...object('BridgePage', 'Appearance of the pages.', { default: {} }),
      properties: {
        name: {
          ...text,
          maxLength: 60,
          description: 'Name of the service. Default: the title or name of the server.',
        },
        logo: { ...text, description: 'Image file: SVG, PNG, JPEG or WebP, at most 256 kB.' },
        support: { ...text, maxLength: 200, description: 'Contact for users: an https or mailto URL, or a sentence.' },
      },
    },
    path: {
      type: 'string',
      pattern: '^/[A-Za-z0-9._~-]+(?:/[A-Za-z0-9._~-]+)*$',
      default: '/auth',
      description: 'Path of the issuer under http.publicUrl. A change signs everyone out and changes the redirect URI.',
    },
    accessToken: duration('10m', 'Lifetime of access tokens, which cannot be revoked. Removed users keep access.'),
    refreshToken: duration('30d', 'Lifetime of an unused refresh token. Each use returns a new token.'),
    login: duration('90d', 'Lifetime of a login. Users then sign in again.'),
    session: duration('12h', 'Lifetime of a browser session without a new login at the provider.'),
    refreshGrace: duration('60s', 'Time for which a used refresh token still works. Later use ends the grant.'),
    signingKeys: {
      ...text,
      description:
        'A PEM file with EC P-256 private keys. The first one signs, all of them verify. Default: derived from `secrets`.',
    },
    trustedIssuers: {
      type: 'array',
      default: [],
      description: 'Issuers of identity assertions (ID-JAG): `issuer`, `jwksUri`, `tenant`.',
      items: {
        ...object('BridgeTrustedIssuer', 'An issuer of identity assertions.', { required: ['issuer'] }),
        properties: {
          issuer: issuerUrl('The exact iss of the assertions.'),
          jwksUri: url('URL of the issuer keys. Default: found by discovery.'),
          tenant: {
            ...text,
            description:
              'Accepted tenant of an issuer with several tenants. Default: only assertions without a tenant.',
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
export type PersonRule = NonNullable<AuthBridgeOptions['roles']>[string]

export const isDevelopment = ({ provider: { type } }: FilledAuthBridge): boolean => type === 'development'
