// Options of auth-bridge with JSON Schema, and presets of identity providers.

import { ENDPOINT_URL_PATTERN, HTTP_URL_PATTERN, ISSUER_URL, SCOPE } from '../../core/auth.ts'
import { closed, duration, flag, list, mapOf, text, words } from '../../core/internal.ts'
import type { OptionsOf } from '../../core/plugin.ts'

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

const plainText = { type: 'string', minLength: 1 } as const
export const texts = { type: 'array', items: plainText, minItems: 1, uniqueItems: true } as const
/** A domain has at least two labels: an address or pattern would match no user. */
const domain = {
  type: 'string',
  pattern: '^[^\\s@*/:,.]+(?:\\.[^\\s@*/:,.]+)+$',
  patternErrorMessage: 'a domain such as acme.example, without @ and *; a subdomain is another domain',
} as const
const domains = { ...texts, items: domain } as const
const url = <const D extends string>(description: D) => words(description, { pattern: ENDPOINT_URL_PATTERN })
const issuerUrl = <const D extends string>(description: D) => words(description, { ...ISSUER_URL })
const LONG_ENOUGH = {
  pattern: '^(?=.*[1-9])(?!0*\\d{1,3}(?:\\.\\d+)?ms$)(?!0+\\.\\d+s$)\\d',
  patternErrorMessage: "a duration such as '30s', or milliseconds; at least 1s",
} as const
const lifetime = <const T extends string, const D extends string>(standard: T, description: D) =>
  duration(description, { minimum: 1_000, allOf: [LONG_ENOUGH], default: standard })
const several = <const D extends string>(description: D) => ({ anyOf: [plainText, texts], description }) as const

export const DEVELOPMENT_OPTIONS = {
  users: list(
    closed(
      {
        id: text('The `sub` of tokens.'),
        name: text('Shown on pages. Default: the id.'),
        roles: list(plainText, 'The `roles` of tokens.'),
        claims: { type: 'object', description: 'Further claims of tokens.' },
      },
      { title: 'DevUser', description: 'A user of the development provider.', required: ['id'] },
    ),
    'Users to choose from on the sign-in page, or any other name: { id, name, roles, claims }. Default: one user, `dev`.',
    { minItems: 1 },
  ),
  resources: {
    ...texts,
    items: { ...texts.items, pattern: HTTP_URL_PATTERN },
    description: 'Resources that tokens are issued for. Default: the resources of the routes.',
  },
  keepIn: text(
    'A file that keeps keys and logins across restarts. Default: none; `mcp-host dev` keeps .mcp-host/dev-auth-server.json.',
  ),
} as const

const provider = closed(
  {
    type: {
      enum: PROVIDERS,
      description: 'The identity provider. oidc or oauth for other providers; development for tests on this machine.',
    },
    clientId: text('Id of the application at the provider. Required except for development.'),
    clientSecret: text('The client secret.', { writeOnly: true }),
    tenant: text('entra: the id of the directory (tenant), not a domain.'),
    domain: text('okta and auth0: the host name, such as acme.okta.com.'),
    issuer: issuerUrl(
      'oidc and keycloak: the exact issuer. okta: issuer of a custom authorization server. entra: of a national cloud. auth0: of a custom domain.',
    ),
    endpoints: closed(
      {
        authorization: url('Authorization endpoint.'),
        token: url('Token endpoint.'),
        userinfo: url('Userinfo endpoint: returns a JSON object with the user of a token.'),
        revocation: url('Revocation endpoint (RFC 7009).'),
      },
      {
        title: 'BridgeEndpoints',
        description: 'oauth: endpoints of the provider. github: endpoints of a GitHub Enterprise Server.',
        required: ['authorization', 'token', 'userinfo'],
      },
    ),
    label: text('Name of the provider on pages. Default: by type.', { maxLength: 40 }),
    scopes: {
      ...texts,
      items: { ...plainText, ...SCOPE },
      description: 'Scopes to request from the provider. Default: those required for sign-in.',
    },
    parameters: mapOf(
      { type: 'string' },
      'Additional parameters of the authorization request, such as { hd: "acme.example" }.',
    ),
    authMethod: {
      enum: ['client_secret_basic', 'client_secret_post', 'none'],
      description: 'Client authentication method. Default: from the metadata of the provider.',
    },
    claims: closed(
      {
        subject: several('Unique user id. Default: sub; entra: oid; github and oauth: id.'),
        name: several('Display name. Default: name, then preferred_username and login.'),
        email: several('Email address. Default: email.'),
        groups: several('Groups. Default: groups; keycloak: groups and realm_access.roles.'),
      },
      { title: 'BridgeClaims', description: 'Claim paths of the provider. A path is a name, or names joined by dots.' },
    ),
    trustEmail: flag('Accepts addresses without email_verified. Set it only if users cannot choose their own address.'),
    exchange: {
      enum: ['refresh', 'token-exchange'],
      description:
        'Method of ctx.upstreamToken({ scope }) for other scopes: refresh or token exchange (RFC 8693). The default depends on the type.',
    },
    ...DEVELOPMENT_OPTIONS,
  },
  {
    title: 'BridgeProvider',
    description: 'The identity provider of the company, with the client credentials of this host.',
    required: ['type'],
  },
)

const rule = closed(
  {
    group: several('Group, as the provider returns it: a name or an id.'),
    domain: { anyOf: [domain, domains], description: 'Domain of the verified email address.' },
    subject: several('Subject of the user.'),
    claim: mapOf(
      { anyOf: [{ type: ['string', 'number', 'boolean'] }, texts] },
      'Claims with this value, or one of these values.',
    ),
  },
  {
    title: 'PersonRule',
    description: 'Conditions for a user. All of them must match. In a list, one match is enough.',
    minProperties: 1,
  },
)

const scopeRule = closed(
  {
    title: text('Title on the consent page, such as Change orders.', { maxLength: 60 }),
    ...rule.properties,
  },
  {
    title: 'ScopeRule',
    description: 'The title of a scope, and conditions for a user, all of which must match.',
    minProperties: 1,
  },
)

export const optionsSchema = closed(
  {
    provider,
    allow: closed(
      {
        domains: { ...domains, description: 'Domains of verified email addresses.' },
        groups: { ...texts, description: 'Groups, as the provider returns them: names or ids.' },
        subjects: { ...texts, description: 'Users, by subject.' },
        everyone: { const: true, description: 'Every user whom the provider admits to the application.' },
      },
      {
        title: 'BridgeAllow',
        description: 'Sign-in rules. A user who matches any entry can sign in.',
        minProperties: 1,
      },
    ),
    scopes: mapOf(
      scopeRule,
      'Scopes with a title, a rule for users, or both. Scopes without a rule are available to every signed-in user.',
      { propertyNames: SCOPE, default: {} },
    ),
    roles: mapOf(rule, 'Roles in host-issued tokens, with the rule for users.', { default: {} }),
    clients: closed(
      {
        metadataDocuments: flag('Accepts clients with a metadata document.', { default: true }),
        registration: flag('Accepts dynamic registration (RFC 7591).', { default: true }),
        redirects: {
          ...texts,
          default: ['http://127.0.0.1:*/**', 'http://[::1]:*/**', 'http://localhost:*/**'],
          description:
            'Allowed redirect URIs. * matches a port or path segment, ** the rest of the path, ?* any query. Hosts cannot contain wildcards.',
        },
        fixed: list(
          closed(
            {
              clientId: text('Client id.'),
              clientSecret: text('Client secret. Default: a public client.', { minLength: 32, writeOnly: true }),
              authMethod: {
                enum: ['client_secret_basic', 'client_secret_post', 'private_key_jwt'],
                description:
                  'Client authentication method. Default: client_secret_basic, or private_key_jwt with keys.',
              },
              keys: list({ type: 'object' }, 'Public keys of the client as JWKs, in place of a secret.', {
                minItems: 1,
              }),
              name: text('Name on the consent page.'),
              redirects: { ...texts, description: 'Exact redirect URIs.' },
            },
            { title: 'BridgeFixedClient', description: 'A registered client.', required: ['clientId', 'redirects'] },
          ),
          'Registered clients: `clientId`, `redirects`, `name`, and `clientSecret` (32 characters or more) with `authMethod`, or `keys` (public JWKs for private_key_jwt).',
          { default: [] },
        ),
      },
      { title: 'BridgeClients', description: 'Allowed MCP clients.', default: {} },
    ),
    page: closed(
      {
        name: text('Name of the service. Default: the title or name of the server.', { maxLength: 60 }),
        logo: text('Image file: SVG, PNG, JPEG or WebP, at most 256 kB.'),
        support: text('Contact for users: an https or mailto URL, or a sentence.', { maxLength: 200 }),
      },
      { title: 'BridgePage', description: 'Appearance of the pages.', default: {} },
    ),
    path: words('Path of the issuer under http.publicUrl. A change signs everyone out and changes the redirect URI.', {
      pattern: '^/[A-Za-z0-9._~-]+(?:/[A-Za-z0-9._~-]+)*$',
      default: '/auth',
    }),
    accessToken: lifetime('10m', 'Lifetime of access tokens, which cannot be revoked. Removed users keep access.'),
    refreshToken: lifetime('30d', 'Lifetime of an unused refresh token. Each use returns a new token.'),
    login: lifetime('90d', 'Lifetime of a login. Users then sign in again.'),
    session: lifetime('12h', 'Lifetime of a browser session without a new login at the provider.'),
    refreshGrace: lifetime('60s', 'Time for which a used refresh token still works. Later use ends the grant.'),
    signingKeys: text(
      'A PEM file with EC P-256 private keys. The first one signs, all of them verify. Default: derived from `secrets`.',
    ),
    trustedIssuers: list(
      closed(
        {
          issuer: issuerUrl('The exact iss of the assertions.'),
          jwksUri: url('URL of the issuer keys. Default: found by discovery.'),
          tenant: text('Accepted tenant of an issuer with several tenants. Default: only assertions without a tenant.'),
        },
        { title: 'BridgeTrustedIssuer', description: 'An issuer of identity assertions.', required: ['issuer'] },
      ),
      'Issuers of identity assertions (ID-JAG): `issuer`, `jwksUri`, `tenant`.',
      { default: [] },
    ),
  },
  {
    description:
      'Makes this host the authorization server for its MCP clients. Users sign in with the identity provider of the company.',
    required: ['provider', 'allow'],
  },
)

export interface AuthBridgeOptions extends OptionsOf<typeof optionsSchema> {}
export interface FilledAuthBridge extends OptionsOf<typeof optionsSchema, true> {}
/** Identity provider settings, for example from `entra(...)`. */
export type ProviderOptions = AuthBridgeOptions['provider']
export type FilledProvider = FilledAuthBridge['provider']
/** Conditions on a user. */
export type PersonRule = NonNullable<AuthBridgeOptions['roles']>[string]

export const isDevelopment = ({ provider: { type } }: FilledAuthBridge): boolean => type === 'development'
