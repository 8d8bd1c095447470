// The issuer that this host is itself, on routes where a plugin fills the slot `authorizationServer`. Its name and keys are
// asked for when a token comes: the name may be known only once the host listens, and keys come and go. Nothing is fetched.
import type { AuthorizationServer, PublicJwk } from '../../core/auth.ts'
import { type Logger, type PluginHost, type Route, type Services, StartError } from '../../core/index.ts'
import { candidates, type KeySource, readKey, type VerificationKey } from '../families/issuer-keys/index.ts'
import type { FilledAuthJwt } from './options.ts'
import { audienceOf, type Issuer, NO_KEYS, type Profile } from './profile.ts'

/** How an authorization server of this host signs: nothing else is taken for its token. */
const ALGORITHM = 'ES256'

/** Where it writes what, beside issuers that have claims of their own. */
const CLAIMS = { scopes: 'scope', roles: 'roles', subject: 'sub', clientId: 'client_id', audience: 'aud' }

/** One for each authorization server that the plugin's routes have. */
export interface OwnIssuer extends Issuer {
  /** Tells it from the others of the same plugin. */
  readonly mark: string
}

/** The keys that the server has now, each read once. */
function createOwnKeys(server: AuthorizationServer, loose: boolean, log: Logger): KeySource {
  let listed: readonly PublicJwk[] = []
  let known: ReadonlyMap<string, VerificationKey | undefined> = new Map()
  let keys: readonly VerificationKey[] = []

  function read(jwk: PublicJwk): VerificationKey | undefined {
    try {
      return readKey(jwk)
    } catch (err) {
      log.error({ err, kid: jwk['kid'] }, 'a key of the authorization server of this host is not used')
      return undefined
    }
  }

  /** Asked for with every request: the same list has the same keys. */
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

/** Without any other issuer the options beside are about it; with others they are about those. */
function ownIssuer(
  server: AuthorizationServer,
  mark: string,
  host: PluginHost,
  options: FilledAuthJwt,
  { issuers, validate }: Profile,
): OwnIssuer {
  const alone = issuers.size === 0
  return {
    mark,
    get name() {
      return server.issuer() ?? ''
    },
    keys: createOwnKeys(server, !validate.signingKey, host.log),
    algorithms: new Set([ALGORITHM]),
    audience: alone ? audienceOf(options.audience, host.at) : undefined,
    claims: alone ? options.claims : CLAIMS,
  }
}

/** Reports where nobody would give out tokens: known once every plugin has filled its slots. */
function checkOwn(
  host: PluginHost,
  { algorithms, dpop }: FilledAuthJwt,
  { issuers }: Profile,
  found: ReadonlyMap<Route, OwnIssuer>,
): void {
  const { at, report, routes } = host
  const without = routes.filter(route => !found.has(route)).map(({ path }) => path)
  if (issuers.size > 0) {
    if (found.size > 0 || routes.length === 0) return
    const why = 'this host gives out no tokens here; switch on auth-bridge, or leave it out'
    report(new StartError(why, { at: [...at, 'ownIssuer'] }))
    return
  }
  if (found.size > 0 && algorithms && !algorithms.includes(ALGORITHM)) {
    const why = `this host signs its own tokens by ${ALGORITHM}; take it in, or leave them out`
    report(new StartError(why, { at: [...at, 'algorithms'] }))
  }
  if (found.size > 0 && dpop.mode === 'required') {
    const why =
      'this host gives out bearer tokens alone, and they would all be refused; name an issuer, or write optional'
    report(new StartError(why, { at: [...at, 'dpop', 'mode'] }))
  }
  if (without.length === 0) return
  const where = found.size === 0 ? '' : ` for ${without.map(path => `routes['${path}']`).join(', ')}`
  const off = found.size === 0 ? '' : ', or switch auth-jwt off there'
  const bridge = 'or switch on auth-bridge, with which this host gives out the tokens itself'
  report(new StartError(`${NO_KEYS.replace(':', `${where}:`)}; ${bridge}${off}`, { at }))
}

/** The routes whose tokens this host gives out itself, each with its issuer. */
export function findOwnIssuers(
  host: PluginHost,
  services: Services,
  options: FilledAuthJwt,
  profile: Profile,
): ReadonlyMap<Route, OwnIssuer> {
  const byServer = new Map<AuthorizationServer, OwnIssuer>()
  const found = new Map<Route, OwnIssuer>()
  if (!(options.ownIssuer ?? profile.issuers.size === 0)) return found
  for (const route of host.routes) {
    const server = services.slot('authorizationServer', route)
    if (server.keys().length === 0) continue
    const own = byServer.get(server) ?? ownIssuer(server, String(byServer.size), host, options, profile)
    byServer.set(server, own)
    found.set(route, own)
  }
  checkOwn(host, options, profile, found)
  return found
}
