// `mcp-host/auth-bridge`: a function per identity provider that returns the option `provider`.
import type { ProviderOptions } from './options.ts'

type SharedOption = 'label' | 'scopes' | 'parameters' | 'authMethod' | 'claims' | 'trustEmail' | 'exchange'

interface Secret {
  /** Client secret, from an environment variable. */
  readonly clientSecret: string
}

type Preset<Own> = Readonly<Pick<ProviderOptions, SharedOption> & { clientId: string } & Own>

/**
 * Microsoft Entra ID. `tenant`: the directory id, not a domain. `clientSecret`: the value, not its id. `issuer`:
 * replaces `tenant` in a national cloud, such as `https://login.microsoftonline.us/<tenant>/v2.0`.
 */
export const entra = (options: Preset<Secret & ({ tenant: string } | { issuer: string })>) =>
  ({ type: 'entra', ...options }) satisfies ProviderOptions

/** Okta. `domain`: such as acme.okta.com. `issuer`: replaces `domain` for a custom authorization server. */
export const okta = (options: Preset<Secret & ({ domain: string } | { issuer: string })>) =>
  ({ type: 'okta', ...options }) satisfies ProviderOptions

/** Google. For one Workspace: `parameters: { hd: 'acme.example' }`, and the domain in `allow.domains`. */
export const google = (options: Preset<Secret>) => ({ type: 'google', ...options }) satisfies ProviderOptions

/** GitHub OAuth App or GitHub App. `endpoints`: for GitHub Enterprise Server; userinfo ends with /api/v3/user. */
export const github = (options: Preset<Secret & Pick<ProviderOptions, 'endpoints'>>) =>
  ({ type: 'github', ...options }) satisfies ProviderOptions

/** Auth0. `domain`: such as acme.eu.auth0.com, or a custom domain. */
export const auth0 = (options: Preset<Secret & { domain: string }>) =>
  ({ type: 'auth0', ...options }) satisfies ProviderOptions

/** Keycloak. `issuer`: realm URL, such as `https://id.acme.example/realms/acme`. */
export const keycloak = (options: Preset<{ issuer: string; clientSecret?: string }>) =>
  ({ type: 'keycloak', ...options }) satisfies ProviderOptions

/** OpenID Connect provider. `issuer`: exactly as in its metadata. */
export const oidc = (options: Preset<{ issuer: string; clientSecret?: string }>) =>
  ({ type: 'oidc', ...options }) satisfies ProviderOptions

/** OAuth 2.0 without OpenID Connect. `claims.subject`: claim with the user id. */
export const oauth = (
  options: Preset<{ endpoints: NonNullable<ProviderOptions['endpoints']>; clientSecret?: string }>,
) => ({ type: 'oauth', ...options }) satisfies ProviderOptions
