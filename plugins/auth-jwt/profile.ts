// From options to what tokens are verified by: each issuer with its keys and algorithms. What cannot be verified by is
// a StartError; what verifies less than it could is a warning.

import { isLoopback, publicKeyIn, sameResources, shownUrl } from '../../core/auth.ts'
import { errorText, type PluginHost, parseDuration, StartError } from '../../core/index.ts'
import {
  type Algorithm,
  ASYMMETRIC,
  createFixedKeys,
  createIssuerKeys,
  createSecret,
  type IssuerKeys,
  type KeySource,
  SYMMETRIC,
} from '../families/issuer-keys/index.ts'
import type { FilledAuthJwt, FilledIssuer, IssuerOptions } from './options.ts'

export type Checks = FilledAuthJwt['validate']

export interface Issuer {
  readonly name: string
  readonly keys: KeySource
  readonly algorithms: ReadonlySet<string>
  /** Undefined: the resource of the route. */
  readonly audience: readonly string[] | undefined
  readonly claims: FilledAuthJwt['claims']
}

/** All that a token is verified by, the route's resource apart. */
export interface Profile {
  /** Those that the options name, by their exact names; none where tokens are this host's own: own-issuer.ts. */
  readonly issuers: ReadonlyMap<string, Issuer>
  readonly validate: Checks
  /** Seconds. */
  readonly clockTolerance: number
  readonly streamsOutliveToken: boolean
  /** Of the issuers whose keys are fetched. */
  readonly remote: ReadonlyMap<string, IssuerKeys>
}

const MIN_SECRET_LENGTH = 32

export const NO_KEYS = 'no keys: set authority, or issuer with one of jwksUri, keys and secret'

type Path = PluginHost['at']

/** Throws where it is there and empty; `at`: of whom the tokens are. */
export function audienceOf(given: IssuerOptions['audience'], at: Path): readonly string[] | undefined {
  if (given === undefined) return undefined
  const listed = [given].flat()
  if (listed.length > 0 && !listed.includes('')) return listed.flatMap(sameResources)
  const why = 'the audience is empty; name whom tokens are for, or leave it out for the address of each route'
  throw new StartError(why, { at })
}

/** Says what is wrong with one issuer's options; `at` is their place in the config. */
function nameOf({ authority, issuer, jwksUri, keys, secret }: IssuerOptions, at: Path): string {
  const stop = (why: string, ...key: string[]) => new StartError(why, { at: [...at, ...key] })
  const sources = Object.entries({ authority, jwksUri, keys, secret }).flatMap(([name, value]) =>
    value === undefined ? [] : [name],
  )
  if (sources.length > 1) throw stop(`${sources.join(' and ')} exclude each other: keys come from one place`)
  if (sources.length === 0) throw stop(NO_KEYS)
  if (authority !== undefined && issuer !== undefined && authority !== issuer) {
    throw stop('authority is the name of the issuer: leave issuer out, or set issuer and jwksUri')
  }
  const name = issuer ?? authority
  if (name === undefined || name === '') throw stop(`${sources[0]} without issuer: whose keys are these?`)
  if (secret !== undefined && secret.length < MIN_SECRET_LENGTH) {
    throw stop(`it is shorter than ${MIN_SECRET_LENGTH} characters; make one with: openssl rand -base64 32`, 'secret')
  }
  const key = secret === undefined ? undefined : publicKeyIn(secret)
  if (key !== undefined) {
    throw stop(`it is ${key}: whoever knows it could sign any token; put public keys into keys: [...]`, 'secret')
  }
  return name
}

function algorithmsOf({ secret }: IssuerOptions, given: readonly Algorithm[] | undefined, at: Path): Set<string> {
  const possible: readonly string[] = secret === undefined ? ASYMMETRIC : SYMMETRIC
  const accepted = (given ?? possible).filter(algorithm => possible.includes(algorithm))
  if (accepted.length === 0) {
    const kind = secret === undefined ? 'public keys' : 'a secret'
    throw new StartError(`none of the algorithms works with ${kind}; take from ${possible.join(', ')}`, { at })
  }
  return new Set(accepted)
}

const WITHOUT: Readonly<Record<keyof Checks, string>> = {
  issuer: 'tokens that name any issuer are accepted, where one of the configured keys signed them',
  audience: 'tokens that were issued for other services are accepted',
  lifetime: 'tokens are accepted before their time, and for ever after it',
  signingKey: 'any key of the issuer is accepted, whatever the token and the key say of it, however short',
}

function warnOfChecksOff(validate: Checks, host: PluginHost): void {
  for (const name of Object.keys(WITHOUT) as Array<keyof Checks>) {
    if (!validate[name]) host.log.warn({ check: name }, `validate.${name} is off: ${WITHOUT[name]}`)
  }
}

/** The issuers that the options name, one or several; none where tokens are to be this host's own. */
function listedIn(options: FilledAuthJwt, at: Path): readonly FilledIssuer[] {
  const { issuers: several, authority, issuer, jwksUri, keys, secret, ownIssuer } = options
  const single = { authority, issuer, jwksUri, keys, secret }
  const isNamed = Object.values(single).some(value => value !== undefined)
  if (several && isNamed) {
    throw new StartError('the issuer stands beside issuers; put it into the list', { at: [...at, 'issuers'] })
  }
  if (several) return several
  return isNamed || ownIssuer === false ? [single as FilledIssuer] : []
}

/** Throws a StartError for options that no token can, or that any token could, be verified by. */
export function createProfile(host: PluginHost, options: FilledAuthJwt): Profile {
  const { issuers: several, audience, claims, validate, streamsOutliveToken } = options
  const { at } = host
  const listed = listedIn(options, at)
  warnOfChecksOff(validate, host)
  const issuers = new Map<string, Issuer>()
  const remote = new Map<string, IssuerKeys>()
  for (const [index, one] of listed.entries()) {
    const place = several ? [...at, 'issuers', index] : at
    const name = nameOf(one, place)
    if (issuers.has(name)) {
      throw new StartError(`the issuer "${name}" is there twice; remove one of them`, { at: place })
    }
    const wanted = audienceOf(one.audience ?? audience, place)
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
    throw new StartError(errorText(cause), { at: [...place, 'keys'], cause })
  }
}

/** Whether this host answers at that address: under its public URL, or on the port that it listens on. */
function isOwnAddress({ origin, hostname, port, protocol }: URL, { http }: PluginHost): boolean {
  if (http.publicUrl !== undefined && new URL(http.publicUrl).origin === origin) return true
  const isHere = hostname === http.host || (isLoopback(hostname) && isLoopback(http.host))
  return isHere && Number(port || (protocol === 'https:' ? 443 : 80)) === http.port
}

const KEY_FETCHES = {
  name: 'mcp_host_key_fetches_total',
  help: 'Fetches of an issuer’s key set.',
  labels: ['issuer', 'outcome'],
}

function fetchedKeys(host: PluginHost, options: FilledAuthJwt, { one, name, place, loose }: Placed): IssuerKeys {
  const url = one.jwksUri ?? name
  const keyed = [
    ...place,
    one.jwksUri === undefined ? (one.authority === undefined ? 'issuer' : 'authority') : 'jwksUri',
  ]
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new StartError(
      `"${shownUrl(url)}" is no http or https URL; write all of it, such as https://login.example.com`,
      { at: keyed },
    )
  }
  if (url.startsWith('http:') && !isLoopback(new URL(url).hostname)) {
    const what = `keys are fetched over plain http, from ${shownUrl(url)}: whoever is on the way can put in their own; use https`
    host.report(new StartError(what, { at: keyed }), process.env['NODE_ENV'] === 'production' ? 'error' : 'warning')
  }
  const fetches = host.figures.counter(KEY_FETCHES)
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
