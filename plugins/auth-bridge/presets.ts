// The options of a provider by its name, with the editor knowing what each takes: `provider: entra({ ... })`. Plain data:
// spread it to change something.
import type { ProviderOptions } from './options.ts'

/** What all take. */
interface Shared
  extends Omit<
    ProviderOptions,
    | 'type'
    | 'tenant'
    | 'domain'
    | 'issuer'
    | 'endpoints'
    | 'clientId'
    | 'clientSecret'
    | 'users'
    | 'resources'
    | 'keepIn'
  > {
  readonly clientId: string
}

interface Secret {
  /** The application's secret there; from the environment, never in the config itself. */
  readonly clientSecret: string
}

type Preset<Own> = Readonly<Shared & Own>

/**
 * Microsoft Entra ID. `tenant`: the id of the directory, not a domain. `clientSecret`: the secret's value, not its id.
 * `issuer`: of a national cloud, in the place of tenant, such as `https://login.microsoftonline.us/<tenant>/v2.0`.
 */
export const entra = (options: Preset<Secret & ({ tenant: string } | { issuer: string })>) =>
  ({ type: 'entra', ...options }) satisfies ProviderOptions

/** Okta. `domain`: such as acme.okta.com. `issuer`: of a custom authorization server, in the place of domain. */
export const okta = (options: Preset<Secret & ({ domain: string } | { issuer: string })>) =>
  ({ type: 'okta', ...options }) satisfies ProviderOptions

/** Google. For one Workspace alone: `parameters: { hd: 'acme.example' }`, and the domain in `allow.domains`. */
export const google = (options: Preset<Secret>) => ({ type: 'google', ...options }) satisfies ProviderOptions

/** GitHub: an OAuth App or a GitHub App. `endpoints`: of an own GitHub Enterprise Server; userinfo ends with /api/v3/user. */
export const github = (options: Preset<Secret & Pick<ProviderOptions, 'endpoints'>>) =>
  ({ type: 'github', ...options }) satisfies ProviderOptions

/** Auth0. `domain`: such as acme.eu.auth0.com, or a custom one. */
export const auth0 = (options: Preset<Secret & { domain: string }>) =>
  ({ type: 'auth0', ...options }) satisfies ProviderOptions

/** Keycloak. `issuer`: the realm, such as `https://id.acme.example/realms/acme`. */
export const keycloak = (options: Preset<{ issuer: string; clientSecret?: string }>) =>
  ({ type: 'keycloak', ...options }) satisfies ProviderOptions

/** Any OpenID Connect provider. `issuer`: exactly as it names itself. */
export const oidc = (options: Preset<{ issuer: string; clientSecret?: string }>) =>
  ({ type: 'oidc', ...options }) satisfies ProviderOptions

/** Plain OAuth 2.0 without OpenID Connect: `endpoints` says where everything is, `claims.subject` what a person's id is. */
export const oauth = (
  options: Preset<{ endpoints: NonNullable<ProviderOptions['endpoints']>; clientSecret?: string }>,
) => ({ type: 'oauth', ...options }) satisfies ProviderOptions
