// Compiles the issuers of auth-jwt: those of the options, and the authorization server of this host.
import {
  type AuthorizationServer,
  isLoopback,
  type PublicJwk,
  publicKeyIn,
  sameResources,
  shownUrl,
} from '../../core/auth.ts'
import type { InternalHost } from '../../core/internal.ts'
import { errorText, type Logger, parseDuration, type Route, StartError } from '../../core/plugin.ts'
import {
  type Algorithm,
  ASYMMETRIC,
  candidates,
  createFixedKeys,
  createIssuerKeys,
  createSecret,
  type IssuerKeys,
  type KeySource,
  readKey,
  SYMMETRIC,
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

const audienceOf = (given: IssuerOptions['audience']): readonly string[] | undefined =>
  given === undefined ? undefined : [given].flat().flatMap(sameResources)

function nameOf({ authority, issuer, jwksUri, keys, secret }: IssuerOptions, at: Path): string {
  const stop = (why: string, ...key: string[]) => new StartError('MH2002', why, { at: [...at, ...key] })
  const sources = Object.entries({ authority, jwksUri, keys, secret }).flatMap(([name, value]) =>
    value === undefined ? [] : [name],
  )
  if (sources.length > 1) throw stop(`${sources.join(' and ')} exclude each other: configure one source of keys`)
  if (sources.length === 0) throw stop(NO_KEYS)
  if (authority !== undefined && issuer !== undefined && authority !== issuer) {
    throw stop('authority already names the issuer: omit issuer, or set issuer and jwksUri')
  }
  const name = issuer ?? authority
  if (name === undefined) throw stop(`${sources[0]} requires issuer`)
  if (secret !== undefined && secret.length < MIN_SECRET_LENGTH) {
    throw stop(`it is shorter than ${MIN_SECRET_LENGTH} characters; make one with: openssl rand -base64 32`, 'secret')
  }
  const key = secret === undefined ? undefined : publicKeyIn(secret)
  if (key !== undefined) {
    throw stop(`it is ${key}: anyone who has it could sign tokens; put public keys into keys: [...]`, 'secret')
  }
  return name
}

function algorithmsOf({ secret }: IssuerOptions, given: readonly Algorithm[] | undefined, at: Path): Set<string> {
  const possible: readonly string[] = secret === undefined ? ASYMMETRIC : SYMMETRIC
  const accepted = (given ?? possible).filter(algorithm => possible.includes(algorithm))
  if (accepted.length === 0) {
    const kind = secret === undefined ? 'public keys' : 'a secret'
    throw new StartError('MH2003', `none of the algorithms works with ${kind}; take from ${possible.join(', ')}`, {
      at,
    })
  }
  return new Set(accepted)
}

const WITHOUT: Readonly<Record<keyof Checks, string>> = {
  issuer: 'tokens of any issuer are accepted if a configured key signed them',
  audience: 'tokens that were issued for other services are accepted',
  lifetime: 'tokens are accepted before and after their validity period',
  signingKey: 'any key of the issuer is accepted, regardless of its id, algorithm and length',
}

function warnOfChecksOff(validate: Checks, host: InternalHost): void {
  for (const name of Object.keys(WITHOUT) as Array<keyof Checks>) {
    if (!validate[name]) host.log.warn({ code: 'MH2009', check: name }, `validate.${name} is off: ${WITHOUT[name]}`)
  }
}

function listedIn(options: FilledAuthJwt, at: Path): readonly FilledIssuer[] {
  const { issuers: several, authority, issuer, jwksUri, keys, secret, ownIssuer } = options
  const single = { authority, issuer, jwksUri, keys, secret }
  const isNamed = Object.values(single).some(value => value !== undefined)
  if (several && isNamed) {
    throw new StartError('MH2002', 'issuer cannot be combined with issuers; add it to the list', {
      at: [...at, 'issuers'],
    })
  }
  if (several) return several
  return isNamed || ownIssuer === false ? [single as FilledIssuer] : []
}

export function createProfile(host: InternalHost, options: FilledAuthJwt) {
  const { issuers: several, audience, claims, validate, streamsOutliveToken } = options
  const { at } = host.config
  const listed = listedIn(options, at)
  warnOfChecksOff(validate, host)
  /** Issuers by name; empty if only this host issues tokens. */
  const issuers = new Map<string, Issuer>()
  const remote = new Map<string, IssuerKeys>()
  for (const [index, one] of listed.entries()) {
    const place = several ? [...at, 'issuers', index] : at
    const name = nameOf(one, place)
    if (issuers.has(name)) {
      throw new StartError('MH2002', `the issuer "${name}" is configured twice; remove one of them`, { at: place })
    }
    const wanted = audienceOf(one.audience ?? audience)
    const placed = { one, name, place, loose: !validate.signingKey }
    let source = fixedKeys(placed)
    if (!source) {
      const fetched = fetchedKeys(host, options, placed)
      remote.set(name, fetched)
      source = fetched
    }
    const algorithms = algorithmsOf(one, options.algorithms, place)
    issuers.set(name, { name, keys: source, algorithms, audience: wanted, claims: one.claims ?? claims })
  }
  const clockTolerance = parseDuration(options.clockTolerance) / 1_000
  return { issuers, remote, validate, clockTolerance, streamsOutliveToken }
}

interface Placed {
  readonly one: IssuerOptions
  readonly name: string
  readonly place: Path
  readonly loose: boolean
}

function fixedKeys({ one: { keys, secret }, place, loose }: Placed): KeySource | undefined {
  if (secret !== undefined) return createSecret(secret)
  if (keys === undefined) return undefined
  try {
    return createFixedKeys(keys, loose)
  } catch (cause) {
    throw new StartError('MH2004', errorText(cause), { at: [...place, 'keys'], cause })
  }
}

function isOwnAddress({ origin, hostname, port, protocol }: URL, { config: { http } }: InternalHost): boolean {
  if (http.publicUrl !== undefined && new URL(http.publicUrl).origin === origin) return true
  const isHere = hostname === http.host || (isLoopback(hostname) && isLoopback(http.host))
  return isHere && Number(port || (protocol === 'https:' ? 443 : 80)) === http.port
}

const KEY_FETCHES = {
  name: 'mcp_host_key_fetches_total',
  help: 'Fetches of an issuer’s key set.',
  labels: ['issuer', 'outcome'],
}

function fetchedKeys(host: InternalHost, options: FilledAuthJwt, { one, name, place, loose }: Placed): IssuerKeys {
  const url = one.jwksUri ?? name
  const keyed = [
    ...place,
    one.jwksUri === undefined ? (one.authority === undefined ? 'issuer' : 'authority') : 'jwksUri',
  ]
  if (url.startsWith('http:') && !isLoopback(new URL(url).hostname)) {
    const what = `keys are fetched over plain http, from ${shownUrl(url)}: anyone on the network path can replace them; use https`
    host.report(
      new StartError('MH2005', what, { at: keyed }),
      process.env['NODE_ENV'] === 'production' ? 'error' : 'warning',
    )
  }
  const fetches = host.metrics.counter(KEY_FETCHES)
  return createIssuerKeys({
    issuer: name,
    fetched: outcome => fetches(1, { issuer: name, outcome }),
    isOwn: isOwnAddress(new URL(url), host),
    jwksUri: one.jwksUri,
    loose,
    maxAge: parseDuration(options.jwksMaxAge),
    maxStale: parseDuration(options.jwksMaxStale),
    log: host.log,
    now: host.clock.now,
  })
}

const ALGORITHM = 'ES256'

const CLAIMS = { scopes: 'scope', roles: 'roles', subject: 'sub', clientId: 'client_id', audience: 'aud' }

export interface OwnIssuer extends Issuer {
  /** Distinguishes the servers of one plugin in cache keys. */
  readonly mark: string
}

function createOwnKeys(server: AuthorizationServer, loose: boolean, log: Logger): KeySource {
  let listed: readonly PublicJwk[] = []
  let known: ReadonlyMap<string, VerificationKey | undefined> = new Map()
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
    const now = server.keys()
    if (now === listed) return keys
    listed = now
    const texts = now.map(jwk => [JSON.stringify(jwk), jwk] as const)
    known = new Map(texts.map(([text, jwk]) => [text, known.has(text) ? known.get(text) : read(jwk)]))
    keys = [...known.values()].filter(key => key !== undefined)
    return keys
  }

  return {
    find: (kid, algorithm) => ({ keys: candidates(current(), kid, algorithm, loose) }),
    isCurrent: key => current().includes(key),
  }
}

/** Without other issuers, the plugin's audience and claims apply to this host's issuer. */
function ownIssuer(
  server: AuthorizationServer,
  mark: string,
  host: InternalHost,
  options: FilledAuthJwt,
  { issuers, validate }: Profile,
): OwnIssuer {
  const isOnly = issuers.size === 0
  return {
    mark,
    get name() {
      return server.issuer() ?? ''
    },
    keys: createOwnKeys(server, !validate.signingKey, host.log),
    algorithms: new Set([ALGORITHM]),
    audience: isOnly ? audienceOf(options.audience) : undefined,
    claims: isOnly ? options.claims : CLAIMS,
  }
}

/** Reports routes without a token issuer, once all slots are filled. */
function checkOwn(
  host: InternalHost,
  { algorithms, dpop }: FilledAuthJwt,
  { issuers }: Profile,
  found: ReadonlyMap<Route, OwnIssuer>,
): void {
  const { report, routes } = host
  const { at } = host.config
  const without = routes.filter(route => !found.has(route)).map(({ path }) => path)
  if (issuers.size > 0) {
    if (found.size > 0 || routes.length === 0) return
    const why = 'this host issues no tokens here; enable auth-bridge, or omit it'
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
  if (without.length === 0) return
  const where = found.size === 0 ? '' : ` for ${without.map(path => `routes['${path}']`).join(', ')}`
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
    const own = byServer.get(server) ?? ownIssuer(server, String(byServer.size), host, options, profile)
    byServer.set(server, own)
    found.set(route, own)
  }
  checkOwn(host, options, profile, found)
  return found
}
