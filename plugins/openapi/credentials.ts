// Selects the security schemes of each operation, and adds their credentials to requests.
import { didYouMean, type Services } from '../../core/internal.ts'
import type { Clock } from '../../core/plugin.ts'
import {
  type Authorization,
  type AuthorizedRequest,
  createTokenSource,
  type Logins,
  type Refusal,
  readSecret,
  type SecretSource,
  type TokenSource,
  type UpstreamAuth,
} from '../families/credentials/index.ts'
import type { Operation, SecurityScheme, SecuritySchemes } from './operation.ts'

export type Credential = SecretSource | { readonly username: string; readonly password: SecretSource } | UpstreamAuth

/** The parts that credentials add to one request. */
export interface AddedCredentials {
  readonly headers: string[]
  /** Encoded `name=value` parts. */
  readonly query: string[]
  readonly cookies: string[]
  readonly secrets: string[]
  readonly tokens: { readonly source: TokenSource; readonly used: Authorization }[]
}

/** Discards tokens after a 401 or 403 response. Returns whether a retry with new tokens can succeed. */
export const renewTokens = ({ tokens }: AddedCredentials, refusal: Refusal): boolean =>
  tokens.some(({ source, used }) => source.invalidateToken(used, refusal))

export interface OperationCredentials {
  /** Parameters that arguments cannot set. Header names in lower case. */
  readonly owned: Readonly<Record<'header' | 'query' | 'cookie', ReadonlySet<string>>>
  add(request: AuthorizedRequest, added: AddedCredentials): Promise<void> | undefined
}

type KindedCredential =
  | { readonly kind: 'secret'; readonly source: SecretSource }
  | { readonly kind: 'basic'; readonly username: string; readonly password: SecretSource }
  | { readonly kind: 'token'; readonly auth: UpstreamAuth }

function toKinded(credential: Credential): KindedCredential {
  if (typeof credential === 'string' || typeof credential === 'function') return { kind: 'secret', source: credential }
  return 'kind' in credential ? { kind: 'token', auth: credential } : { kind: 'basic', ...credential }
}

/** Returns the kinds of credentials that a scheme accepts. Empty: the host does not support the scheme. */
function acceptedKinds(scheme: SecurityScheme): readonly KindedCredential['kind'][] {
  if (scheme.type === 'apiKey') return ['secret']
  if (scheme.type === 'oauth2' || scheme.type === 'openIdConnect') return ['secret', 'token']
  if (scheme.type === 'http' && scheme.scheme === 'basic') return ['basic']
  return scheme.type === 'http' && scheme.scheme === 'bearer' ? ['secret', 'token'] : []
}

const EXPECTED: Readonly<Record<KindedCredential['kind'], string>> = {
  secret: 'a string or a function',
  basic: '{ username, password }',
  token: 'an object with `kind`',
}

function describeScheme(scheme: SecurityScheme): string {
  return scheme.type === 'http' ? `http ${scheme.scheme}` : scheme.type
}

/** Returns credentials of the config that cannot be used, with the reasons. */
export function findCredentialErrors(
  schemes: SecuritySchemes,
  credentials: Readonly<Record<string, Credential>>,
  trusts: (url: URL) => boolean = () => true,
): { readonly scheme: string; readonly text: string }[] {
  return Object.entries(credentials).flatMap(([name, credential]) => {
    const scheme = schemes.get(name)
    if (!scheme) {
      const known = [...schemes.keys()]
      const hint = known.length === 0 ? 'it declares none' : didYouMean(name, known)
      return [{ scheme: name, text: `the document has no security scheme "${name}"; ${hint}` }]
    }
    const accepted = acceptedKinds(scheme)
    const kinded = toKinded(credential)
    if (accepted.includes(kinded.kind)) {
      const error = kinded.kind === 'token' ? checkEndpoint(scheme, kinded.auth, trusts) : undefined
      return error === undefined ? [] : [{ scheme: name, text: `the security scheme "${name}" ${error}` }]
    }
    const expected = accepted.map(kind => EXPECTED[kind]).join(' or ')
    const text = expected === '' ? 'is not supported' : `requires ${expected}`
    return [{ scheme: name, text: `the security scheme "${name}" (${describeScheme(scheme)}) ${text}` }]
  })
}

const readTokenUrl = (scheme: SecurityScheme): string | undefined =>
  scheme.type === 'oauth2' ? scheme.tokenUrl : undefined

/** Returns why the client credentials cannot be sent to the token endpoint of a scheme. */
function checkEndpoint(scheme: SecurityScheme, auth: UpstreamAuth, trusts: (url: URL) => boolean): string | undefined {
  if (auth.kind !== 'client-credentials' || auth.issuer !== undefined) return undefined
  const tokenUrl = readTokenUrl(scheme)
  if (tokenUrl === undefined) {
    return auth.clientSecret === undefined ? undefined : 'has no token URL for `clientSecret`: set `issuer`'
  }
  const url = URL.parse(tokenUrl)
  if (!url) return `has the token URL "${tokenUrl}", which is not absolute: set \`issuer\``
  if (trusts(url)) return undefined
  const why = `has the token URL ${url.origin}, whose origin is not that of the document`
  return `${why}: set \`issuer\`, or list "${url.host}" in \`allowHosts\``
}

interface Adder {
  readonly place: 'header' | 'query' | 'cookie'
  /** Header names in lower case. */
  readonly name: string
  add(request: AuthorizedRequest, added: AddedCredentials): Promise<void> | undefined
}

/** Adds a secret of the config, without waiting if the secret is a string. */
const secretAdder = (
  about: Pick<Adder, 'place' | 'name'>,
  source: SecretSource,
  what: string,
  use: (secret: string, added: AddedCredentials) => void,
): Adder => ({
  ...about,
  add(_, added) {
    const secret = readSecret(source, what)
    const addSecret = (value: string) => {
      added.secrets.push(value)
      use(value, added)
    }
    if (typeof secret !== 'string') return secret.then(addSecret)
    addSecret(secret)
    return undefined
  },
})

/** RFC 6265, `cookie-value`. */
const COOKIE_VALUE = /^[!#-+\--:<-[\]-~]*$/

function apiKeyAdder(
  { name, in: place }: Extract<SecurityScheme, { readonly type: 'apiKey' }>,
  source: SecretSource,
  what: string,
): Adder {
  const about = { place, name: place === 'header' ? name.toLowerCase() : name }
  return secretAdder(about, source, what, (secret, { headers, query, cookies }) => {
    if (place === 'header') headers.push(name, secret)
    else if (place === 'query') query.push(`${encodeURIComponent(name)}=${encodeURIComponent(secret)}`)
    else cookies.push(`${name}=${COOKIE_VALUE.test(secret) ? secret : encodeURIComponent(secret)}`)
  })
}

const AUTHORIZATION = { place: 'header', name: 'authorization' } as const

const bearerAdder = (source: SecretSource, what: string): Adder =>
  secretAdder(AUTHORIZATION, source, what, (secret, { headers }) => headers.push('authorization', `Bearer ${secret}`))

const basicAdder = (username: string, source: SecretSource, what: string): Adder =>
  secretAdder(AUTHORIZATION, source, `${what}.password`, (password, { headers, secrets }) => {
    const encoded = Buffer.from(`${username}:${password}`).toString('base64')
    secrets.push(encoded)
    headers.push('authorization', `Basic ${encoded}`)
  })

const tokenAdder = (source: TokenSource): Adder => ({
  ...AUTHORIZATION,
  async add(request, { headers, secrets, tokens }) {
    const used = await source.authorize(request)
    headers.push(...used.headers)
    secrets.push(...used.secrets)
    tokens.push({ source, used })
  },
})

const loginId = (document: string, scheme: string | undefined): string =>
  scheme === undefined ? document : `${document}.${scheme}`

/** Returns the login ids of a document. */
export const findLogins = (
  document: string,
  {
    auth,
    credentials = {},
  }: { readonly auth?: UpstreamAuth; readonly credentials?: Readonly<Record<string, Credential>> },
): string[] => {
  const isLogin = (credential: Credential | undefined) =>
    typeof credential === 'object' && 'kind' in credential && credential.kind === 'login'
  const schemes = Object.keys(credentials).filter(scheme => isLogin(credentials[scheme]))
  return [...(isLogin(auth) ? [loginId(document, undefined)] : []), ...schemes.map(entry => loginId(document, entry))]
}

export interface CredentialOptions {
  /** The config path of the document, for messages. */
  readonly what: string
  readonly schemes: SecuritySchemes
  readonly credentials: Readonly<Record<string, Credential>>
  /** Credentials for operations without security requirements. */
  readonly auth: UpstreamAuth | undefined
  /** Hosts with private addresses that token URLs of the document can have. */
  readonly allowHosts: readonly string[]
  readonly services: () => Services
  readonly clock: Clock
  /** The logins; required for `login`. */
  readonly logins?: { readonly logins: Logins; readonly document: string } | undefined
}

export type CredentialPlan = ReturnType<typeof planCredentials>

const NO_ADDERS: Adder[] = []

type SecuredOperation = Pick<Operation, 'security'>
type IsConfigured = (scheme: string) => boolean

/** Selects the first alternative whose schemes all have a credential, otherwise one without schemes. */
function selectAlternative({ security }: SecuredOperation, isConfigured: IsConfigured) {
  const usable = security.filter(alternative => alternative.size > 0 && [...alternative.keys()].every(isConfigured))
  return usable[0] ?? security.find(alternative => alternative.size === 0)
}

/** Returns the schemes that an operation requires; undefined if the given credentials suffice. */
export function findMissingSchemes(
  operation: SecuredOperation,
  schemes: SecuritySchemes,
  isConfigured: IsConfigured = () => false,
): string | undefined {
  const { security } = operation
  if (security.length === 0 || selectAlternative(operation, isConfigured)) return undefined
  const describe = (name: string) => {
    const scheme = schemes.get(name)
    return `"${name}"${scheme && acceptedKinds(scheme).length === 0 ? ` (${describeScheme(scheme)}: not supported)` : ''}`
  }
  return security.map(alternative => [...alternative.keys()].map(describe).join(' and ')).join(', or ')
}

/** Assigns credentials to operations. Requires an earlier call of `findCredentialErrors`. */
export function planCredentials({
  what,
  schemes,
  credentials,
  auth,
  allowHosts,
  services,
  clock,
  logins: loginTokens,
}: CredentialOptions) {
  const adders = new Map<string, Adder>()

  function tokens(key: string, about: UpstreamAuth, apiUrl: string, scheme?: string, tokenEndpoint?: string): Adder {
    const at = `${key} ${apiUrl}`
    const existing = adders.get(at)
    if (existing) return existing
    const login = loginTokens && { logins: loginTokens.logins, id: loginId(loginTokens.document, scheme) }
    const source = createTokenSource(about, { path: key, apiUrl, tokenEndpoint, allowHosts, services, clock, login })
    const adder = tokenAdder(source)
    adders.set(at, adder)
    return adder
  }

  function findAdder(name: string, apiUrl: string): Adder | undefined {
    const scheme = schemes.get(name)
    const credentialOption = Object.hasOwn(credentials, name) ? credentials[name] : undefined
    if (!scheme || credentialOption === undefined) return undefined
    const key = `${what}.credentials.${name}`
    const credential = toKinded(credentialOption)
    if (credential.kind === 'basic') return basicAdder(credential.username, credential.password, key)
    if (credential.kind === 'token') {
      return tokens(key, credential.auth, apiUrl, name, readTokenUrl(scheme))
    }
    return scheme.type === 'apiKey' ? apiKeyAdder(scheme, credential.source, key) : bearerAdder(credential.source, key)
  }

  const isConfigured = (name: string) => Object.hasOwn(credentials, name) && schemes.has(name)

  return {
    /** Returns why an operation cannot be called; undefined if it can. */
    reasonFor(operation: SecuredOperation): string | undefined {
      const missing = findMissingSchemes(operation, schemes, isConfigured)
      return missing === undefined ? undefined : `no credential for the security scheme ${missing}`
    },
    of(operation: Pick<Operation, 'security' | 'baseUrl'>): OperationCredentials {
      const { baseUrl, security } = operation
      const names = [...(selectAlternative(operation, isConfigured)?.keys() ?? [])]
      const selected = names.flatMap(name => findAdder(name, baseUrl) ?? NO_ADDERS)
      const isUndeclared = security.length === 0 && auth !== undefined
      const chosen = isUndeclared ? [tokens(`${what}.auth`, auth, baseUrl)] : selected
      const ownedNames = (place: Adder['place']) =>
        new Set(chosen.filter(adder => adder.place === place).map(({ name }) => name))
      return {
        owned: { header: ownedNames('header'), query: ownedNames('query'), cookie: ownedNames('cookie') },
        add(request, added) {
          const waiting = chosen.flatMap(adder => adder.add(request, added) ?? [])
          return waiting.length === 0 ? undefined : Promise.all(waiting).then(() => undefined)
        },
      }
    },
  }
}
