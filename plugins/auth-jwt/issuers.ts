// Compiles the issuers of auth-jwt: those of the options, and the authorization server of this host.
import {
  type AuthorizationServer,
  isLoopback,
  type PublicJwk,
  publicKeyTypeOf,
  redactUrl,
  sameResources,
} from '../../core/auth.ts'
import type { InternalHost } from '../../core/internal.ts'
import { errorText, type Logger, parseDuration, type Route, StartError } from '../../core/plugin.ts'
import {
  type Algorithm,
  ASYMMETRIC,
  createIssuerKeys,
  createSecretKeys,
  createStaticKeys,
  type IssuerKeys,
  type KeySource,
  readKey,
  SYMMETRIC,
  selectKeys,
  type VerificationKey,
} from '../families/issuer-keys/index.ts'
import type { FilledAuthJwt, FilledIssuer, IssuerOptions } from './options.ts'

type Checks = FilledAuthJwt['validate']

export interface Issuer {
  readonly name: string
  readonly keys: KeySource
  readonly algorithms: ReadonlySet<string>
  readonly audience: readonly string[] | undefined
  readonly claims: FilledAuthJwt['claims']
}

export type Profile = ReturnType<typeof createProfile>

const MIN_SECRET_LENGTH = 32

const NO_KEYS = 'no keys: set authority, or issuer with one of jwksUri, keys and secret'

type Path = InternalHost['config']['at']

const expandAudience = (audience: IssuerOptions['audience']): readonly string[] | undefined =>
  audience === undefined ? undefined : [audience].flat().flatMap(sameResources)

function requireIssuerName({ authority, issuer, jwksUri, keys, secret }: IssuerOptions, at: Path): string {
  const invalid = (why: string, ...key: string[]) => new StartError('MH2002', why, { at: [...at, ...key] })
  const sources = Object.entries({ authority, jwksUri, keys, secret }).flatMap(([name, value]) =>
    value === undefined ? [] : [name],
  )
  if (sources.length > 1) throw invalid(`${sources.join(' and ')} cannot be combined; configure one source of keys`)
  if (sources.length === 0) throw invalid(NO_KEYS)
  if (authority !== undefined && issuer !== undefined && authority !== issuer) {
    throw invalid('authority already names the issuer: omit issuer, or set issuer and jwksUri')
  }
  const name = issuer ?? authority
  if (name === undefined) throw invalid(`${sources[0]} requires issuer`)
  if (secret !== undefined && secret.length < MIN_SECRET_LENGTH) {
    throw invalid(
      `it is shorter than ${MIN_SECRET_LENGTH} characters; make one with: openssl rand -base64 32`,
      'secret',
    )
  }
  const key = secret === undefined ? undefined : publicKeyTypeOf(secret)
  if (key !== undefined) {
    throw invalid(`it is ${key}: anyone who has it could sign tokens; put public keys into keys: [...]`, 'secret')
  }
  return name
}

function readAlgorithms({ secret }: IssuerOptions, listed: readonly Algorithm[] | undefined, at: Path): Set<string> {
  const possible: readonly string[] = secret === undefined ? ASYMMETRIC : SYMMETRIC
  const accepted = (listed ?? possible).filter(algorithm => possible.includes(algorithm))
  if (accepted.length === 0) {
    const kind = secret === undefined ? 'public keys' : 'a secret'
    throw new StartError('MH2003', `none of the algorithms works with ${kind}; use one of ${possible.join(', ')}`, {
      at,
    })
  }
  return new Set(accepted)
}

const EFFECTS: Readonly<Record<keyof Checks, string>> = {
  issuer: 'tokens of any issuer are accepted if a configured key signed them',
  audience: 'tokens that were issued for other services are accepted',
  lifetime: 'tokens are accepted before and after their validity period',
  signingKey: 'any key of the issuer is accepted, regardless of its id, algorithm and length',
}

function warnOfDisabledChecks(validate: Checks, host: InternalHost): void {
  for (const name of Object.keys(EFFECTS) as Array<keyof Checks>) {
    if (!validate[name]) host.log.warn({ code: 'MH2009', check: name }, `validate.${name} is off: ${EFFECTS[name]}`)
  }
}

function listIssuers(options: FilledAuthJwt, at: Path): readonly FilledIssuer[] {
  const { issuers: configured, authority, issuer, jwksUri, keys, secret, ownIssuer } = options
  const single = { authority, issuer, jwksUri, keys, secret }
  const isNamed = Object.values(single).some(value => value !== undefined)
  if (configured && isNamed) {
    throw new StartError('MH2002', 'issuer cannot be combined with issuers; add it to the list', {
      at: [...at, 'issuers'],
    })
  }
  if (configured) return configured
  return isNamed || ownIssuer === false ? [single as FilledIssuer] : []
}

export function createProfile(host: InternalHost, options: FilledAuthJwt) {
  const { issuers: configured, audience, claims, validate, streamsOutliveToken } = options
  const { at } = host.config
  const listed = listIssuers(options, at)
  warnOfDisabledChecks(validate, host)
  /** Issuers by name; empty if only this host issues tokens. */
  const issuers = new Map<string, Issuer>()
  const remote = new Map<string, IssuerKeys>()
  for (const [index, issuer] of listed.entries()) {
    const path = configured ? [...at, 'issuers', index] : at
    const name = requireIssuerName(issuer, path)
    if (issuers.has(name)) {
      throw new StartError('MH2002', `the issuer "${name}" is configured twice; remove one of them`, { at: path })
    }
    const expectedAudience = expandAudience(issuer.audience ?? audience)
    const source = { issuer, name, path, lenient: !validate.signingKey }
    let keys = createConfiguredKeys(source)
    if (!keys) {
      const fetched = fetchKeys(host, options, source)
      remote.set(name, fetched)
      keys = fetched
    }
    const algorithms = readAlgorithms(issuer, options.algorithms, path)
    issuers.set(name, { name, keys, algorithms, audience: expectedAudience, claims: issuer.claims ?? claims })
  }
  const clockTolerance = parseDuration(options.clockTolerance) / 1_000
  return { issuers, remote, validate, clockTolerance, streamsOutliveToken }
}

interface Source {
  readonly issuer: IssuerOptions
  readonly name: string
  readonly path: Path
  readonly lenient: boolean
}

function createConfiguredKeys({ issuer: { keys, secret }, path, lenient }: Source): KeySource | undefined {
  if (secret !== undefined) return createSecretKeys(secret)
  if (keys === undefined) return undefined
  try {
    return createStaticKeys(keys, lenient)
  } catch (cause) {
    throw new StartError('MH2004', errorText(cause), { at: [...path, 'keys'], cause })
  }
}

function isOwnUrl({ origin, hostname, port, protocol }: URL, { config: { http } }: InternalHost): boolean {
  if (http.publicUrl !== undefined && new URL(http.publicUrl).origin === origin) return true
  const isHere = hostname === http.host || (isLoopback(hostname) && isLoopback(http.host))
  return isHere && Number(port || (protocol === 'https:' ? 443 : 80)) === http.port
}

const KEY_FETCHES = {
  name: 'mcp_host_key_fetches_total',
  help: 'Fetches of an issuer’s key set.',
  labels: ['issuer', 'outcome'],
}

function fetchKeys(host: InternalHost, options: FilledAuthJwt, { issuer, name, path, lenient }: Source): IssuerKeys {
  const url = issuer.jwksUri ?? name
  const urlPath = [
    ...path,
    issuer.jwksUri === undefined ? (issuer.authority === undefined ? 'issuer' : 'authority') : 'jwksUri',
  ]
  if (url.startsWith('http:') && !isLoopback(new URL(url).hostname)) {
    const what = `keys are fetched over plain http, from ${redactUrl(url)}: anyone on the network path can replace them; use https`
    host.report(
      new StartError('MH2005', what, { at: urlPath }),
      process.env['NODE_ENV'] === 'production' ? 'error' : 'warning',
    )
  }
  const countFetch = host.metrics.counter(KEY_FETCHES)
  return createIssuerKeys({
    issuer: name,
    onFetch: outcome => countFetch(1, { issuer: name, outcome }),
    isOwn: isOwnUrl(new URL(url), host),
    jwksUri: issuer.jwksUri,
    lenient,
    maxAge: parseDuration(options.jwksMaxAge),
    maxStale: parseDuration(options.jwksMaxStale),
    log: host.log,
    now: host.clock.now,
  })
}

const ALGORITHM = 'ES256'

const CLAIMS = { scopes: 'scope', roles: 'roles', subject: 'sub', clientId: 'client_id', audience: 'aud' }

export interface OwnIssuer extends Issuer {
  readonly cacheKey: string
}

function createOwnKeys(server: AuthorizationServer, lenient: boolean, log: Logger): KeySource {
  let listed: readonly PublicJwk[] = []
  let byText: ReadonlyMap<string, VerificationKey | undefined> = new Map()
  let keys: readonly VerificationKey[] = []

  function read(jwk: PublicJwk): VerificationKey | undefined {
    try {
      return readKey(jwk)
    } catch (err) {
      log.error({ code: 'MH2011', err, kid: jwk['kid'] }, 'a key of the authorization server of this host is not used')
      return undefined
    }
  }

  /** Called for each request. An unchanged list returns unchanged keys. */
  function current(): readonly VerificationKey[] {
    const published = server.keys()
    if (published === listed) return keys
    listed = published
    const texts = published.map(jwk => [JSON.stringify(jwk), jwk] as const)
    byText = new Map(texts.map(([text, jwk]) => [text, byText.has(text) ? byText.get(text) : read(jwk)]))
    keys = [...byText.values()].filter(key => key !== undefined)
    return keys
  }

  return {
    find: (kid, algorithm) => ({ keys: selectKeys(current(), kid, algorithm, lenient) }),
    isCurrent: key => current().includes(key),
  }
}

/** Without other issuers, the plugin's audience and claims apply to this host's issuer. */
function createOwnIssuer(
  server: AuthorizationServer,
  cacheKey: string,
  host: InternalHost,
  options: FilledAuthJwt,
  { issuers, validate }: Profile,
): OwnIssuer {
  const isOnly = issuers.size === 0
  return {
    cacheKey,
    get name() {
      return server.issuer() ?? ''
    },
    keys: createOwnKeys(server, !validate.signingKey, host.log),
    algorithms: new Set([ALGORITHM]),
    audience: isOnly ? expandAudience(options.audience) : undefined,
    claims: isOnly ? options.claims : CLAIMS,
  }
}

/** Reports routes without a token issuer, once all slots are filled. */
function checkOwnIssuers(
  host: InternalHost,
  { algorithms, dpop }: FilledAuthJwt,
  { issuers }: Profile,
  found: ReadonlyMap<Route, OwnIssuer>,
): void {
  const { report, routes } = host
  const { at } = host.config
  const uncovered = routes.filter(route => !found.has(route)).map(({ path }) => path)
  if (issuers.size > 0) {
    if (found.size > 0 || routes.length === 0) return
    const why = 'no route of this plugin has tokens of this host; enable auth-bridge, or omit ownIssuer'
    report(new StartError('MH2006', why, { at: [...at, 'ownIssuer'] }))
    return
  }
  if (found.size > 0 && algorithms && !algorithms.includes(ALGORITHM)) {
    const why = `this host signs its tokens with ${ALGORITHM}; add it, or omit algorithms`
    report(new StartError('MH2003', why, { at: [...at, 'algorithms'] }))
  }
  if (found.size > 0 && dpop.mode === 'required') {
    const why = 'this host issues bearer tokens only, which would all be refused; set issuer, or use optional'
    report(new StartError('MH2007', why, { at: [...at, 'dpop', 'mode'] }))
  }
  if (uncovered.length === 0) return
  const where = found.size === 0 ? '' : ` for ${uncovered.map(path => `routes['${path}']`).join(', ')}`
  const off = found.size === 0 ? '' : ', or disable auth-jwt there'
  const bridge = 'or enable auth-bridge, so that this host issues tokens'
  report(new StartError('MH2006', `${NO_KEYS.replace(':', `${where}:`)}; ${bridge}${off}`, { at }))
}

/** The routes whose tokens this host issues. */
export function findOwnIssuers(
  host: InternalHost,
  options: FilledAuthJwt,
  profile: Profile,
): ReadonlyMap<Route, OwnIssuer> {
  const byServer = new Map<AuthorizationServer, OwnIssuer>()
  const found = new Map<Route, OwnIssuer>()
  if (!(options.ownIssuer ?? profile.issuers.size === 0)) return found
  for (const route of host.routes) {
    const server = host.services.slot('authorizationServer', route)
    if (server.keys().length === 0) continue
    const own = byServer.get(server) ?? createOwnIssuer(server, String(byServer.size), host, options, profile)
    byServer.set(server, own)
    found.set(route, own)
  }
  checkOwnIssuers(host, options, profile, found)
  return found
}
