// Authenticates callers by opaque tokens (RFC 7662), and enforces `authorize` of routes.
import { fetchJson, isLoopback, needResource, sameResources, shownUrl } from '../../core/auth.ts'
import { definePlugin } from '../../core/internal.ts'
import {
  authenticateBearer,
  authorizeRoute,
  type Claims,
  isObject,
  parseDuration,
  StartError,
  type TokenPlace,
} from '../../core/plugin.ts'
import { enforceDPoP } from '../families/dpop/index.ts'
import { createIssuerCheck } from '../families/issuer-keys/index.ts'
import { type AuthIntrospectionOptions, authIntrospectionSchema, type FilledAuthIntrospection } from './options.ts'
import { createVerifier } from './verify-token.ts'

interface IntrospectionClient {
  readonly endpoint: string
  readonly clientId: string
  readonly clientSecret: string
  readonly clientAuth: 'basic' | 'post'
  readonly signal: AbortSignal
}

/** RFC 6749 section 2.3.1. */
const encoded = (text: string) => new URLSearchParams({ '': text }).toString().slice(1)

async function introspect(token: string, client: IntrospectionClient): Promise<Claims | undefined> {
  const { endpoint, clientId, clientSecret, clientAuth, signal } = client
  const form = new URLSearchParams({ token, token_type_hint: 'access_token' })
  const headers: Record<string, string> = { 'Content-Type': 'application/x-www-form-urlencoded' }
  if (clientAuth === 'post') {
    form.set('client_id', clientId)
    form.set('client_secret', clientSecret)
  } else {
    const credentials = Buffer.from(`${encoded(clientId)}:${encoded(clientSecret)}`).toString('base64')
    headers['Authorization'] = `Basic ${credentials}`
  }
  const { status, body } = await fetchJson(endpoint, { method: 'POST', body: form.toString(), headers, signal })
  const shown = shownUrl(endpoint)
  if (status === 401 || status === 403) throw new Error(`${shown} answers ${status}: check clientId and clientSecret`)
  if (status !== 200) throw new Error(`${shown} answers ${status}`)
  if (!isObject(body) || typeof body['active'] !== 'boolean')
    throw new Error(`the response of ${shown} is invalid (RFC 7662)`)
  return body['active'] ? body : undefined
}

export type { AuthIntrospectionOptions } from './options.ts'

/** Milliseconds; limits the use of a revoked token. */
const MAX_CACHE = 300_000

export const authIntrospection = definePlugin<AuthIntrospectionOptions, FilledAuthIntrospection>({
  options: authIntrospectionSchema,
  provides: ['user', 'authorize'],
  setup(host, options) {
    const { endpoint, clientId, clientSecret, clientAuth, issuer, audience, validate, claims } = options
    const stop = (why: string, ...key: string[]) => new StartError('MH2020', why, { at: [...host.config.at, ...key] })
    if (!endpoint || !clientId || !clientSecret) throw stop('endpoint, clientId and clientSecret must not be empty')
    if (endpoint.startsWith('http:') && !isLoopback(new URL(endpoint).hostname)) {
      const what =
        'tokens and the client secret are sent over plain http: anyone on the network path can read them; use https'
      const severity = process.env['NODE_ENV'] === 'production' ? 'error' : 'warning'
      host.report(stop(what, 'endpoint'), severity)
    }
    const cacheFor = parseDuration(options.cacheFor)
    if (cacheFor > MAX_CACHE)
      throw stop('more than 5m: revoked tokens would stay valid too long; use 5m or less', 'cacheFor')
    const fixed = audience === undefined ? undefined : [audience].flat().flatMap(sameResources)
    if (fixed?.length === 0)
      throw stop('empty; set the audience of tokens, or omit it for the URL of each route', 'audience')
    if (!validate.audience) {
      const what = 'validate.audience is off: tokens that were issued for other services are accepted'
      host.log.warn({ code: 'MH2009', check: 'audience' }, what)
    }
    const closing = new AbortController()
    const client = { endpoint, clientId, clientSecret, clientAuth, signal: closing.signal }
    const resourceAt = ({ route, params }: TokenPlace) =>
      host.services.slot('protectedResource', route).resourceOf(route, params)
    const verify = createVerifier({
      ask: token => introspect(token, client),
      issuer,
      origin: new URL(endpoint).origin,
      isForeignIssuer: createIssuerCheck(host),
      audienceAt: validate.audience ? place => fixed ?? sameResources(resourceAt(place)) : undefined,
      cacheFor,
      claims,
      streamsOutliveToken: options.streamsOutliveToken,
      log: host.log,
      now: host.clock.now,
    })
    host.authenticate(authenticateBearer(host, verify, enforceDPoP(host, options.dpop)))
    host.authorize(authorizeRoute(host))
    host.onReady(() => {
      if (validate.audience && !fixed) needResource(host)
    })
    host.onClose(() => closing.abort(new Error('the host is closing')))
  },
  async underTest(options) {
    const { answerInTest } = await import('./under-test.ts')
    return answerInTest(options)
  },
})
