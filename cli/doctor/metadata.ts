// Checks metadata documents of the resource (RFC 9728) and its authorization servers (RFC 8414, OpenID Connect), and their keys.
import { discoverServer } from '../../client/discovery.ts'
import type { ServerInfo } from '../../client/stores.ts'
import { type Answer, ask, type Finding, failure, note, ok, type Patient, wrong } from './ask.ts'
import { readChallenge } from './challenge.ts'
import { createWatched, findingOf, type Try } from './client-view.ts'

const CHECK = 'metadata'
const ISSUER = 'identity provider'
const REVERSE_PROXY = 'set http.publicUrl to the URL that clients use, and configure the proxy to forward /.well-known'

const ROOT_WELL_KNOWN =
  'configure the proxy to forward /.well-known/... at the root of this host name (docs/operating.md, "Behind a path prefix")'

const withoutSlash = (path: string) => (path === '/' ? '' : path.replace(/\/$/, ''))

function wellKnown(name: string, of: string): string {
  const { origin, pathname } = new URL(of)
  return `${origin}/.well-known/${name}${withoutSlash(pathname)}`
}

const sameUrl = (a: string, b: string) =>
  URL.canParse(a) && URL.canParse(b) && new URL(a).href.replace(/\/$/, '') === new URL(b).href.replace(/\/$/, '')

/** Whether `resource` is a parent of `url`, such as one audience for a whole host. */
function isAbove(resource: string, url: string): boolean {
  if (!URL.canParse(resource)) return false
  const [above, here] = [new URL(resource), new URL(url)]
  return above.origin === here.origin && here.pathname.startsWith(`${withoutSlash(above.pathname)}/`)
}

function checkResource(resource: unknown, url: string): Finding {
  if (typeof resource !== 'string') return wrong(CHECK, 'the document names no resource', REVERSE_PROXY)
  if (sameUrl(resource, url)) return ok(CHECK, `resource is ${resource}`)
  if (isAbove(resource, url)) return note(CHECK, `resource is ${resource}, one for every URL below it`)
  const insecure = url.startsWith('https:') && resource.startsWith('http:')
  const why = insecure ? ': http behind https' : ''
  return wrong(
    CHECK,
    `resource is ${resource}, but clients call ${url}${why} and must refuse it`,
    'set http.publicUrl, or resource-metadata.resource, to the URL that clients use',
  )
}

async function tryAsk(url: string): Promise<Answer | string> {
  try {
    return await ask(url, { headers: { Accept: 'application/json', Origin: 'https://doctor.example' } })
  } catch (error) {
    return failure(error)
  }
}

type FoundDocument = Answer & { readonly json: Readonly<Record<string, unknown>> }

async function readDocument(url: string): Promise<FoundDocument | string> {
  const answer = await tryAsk(url)
  if (typeof answer === 'string') return answer
  if (answer.status !== 200) return `answered ${answer.status}`
  return answer.json ? { ...answer, json: answer.json } : 'is no JSON object'
}

async function checkKeys(metadata: Readonly<Record<string, unknown>>, issuer: string): Promise<Finding> {
  const { jwks_uri: uri } = metadata
  if (typeof uri !== 'string' || !URL.canParse(uri))
    return wrong(
      ISSUER,
      `${issuer} names no jwks_uri`,
      'set jwksUri of auth-jwt, or use auth-introspection for opaque tokens',
    )
  const keys = await readDocument(uri)
  if (typeof keys === 'string')
    return wrong(ISSUER, `the keys at ${uri}: ${keys}`, 'make this URL reachable from here and from the host')
  const list = keys.json['keys']
  if (!Array.isArray(list) || list.length === 0)
    return wrong(ISSUER, `no keys at ${uri}`, 'configure the issuer to publish its signing keys')
  return ok(ISSUER, `${list.length} key${list.length === 1 ? '' : 's'} at ${uri}`)
}

/** Tolerated clock skew, seconds; `auth-jwt` allows 60. */
const SMALL_SKEW = 10
const TOLERANCE = 60

function checkClocks(server: Answer, issuer: Answer, name: string): Finding[] {
  const [here, there] = [Date.parse(server.headers.date ?? ''), Date.parse(issuer.headers.date ?? '')]
  const skew = Math.round(Math.abs(here - there) / 1_000)
  if (Number.isNaN(skew)) return [note('clock', `no Date header to compare the clocks of the server and ${name} by`)]
  if (skew > TOLERANCE)
    return [
      wrong(
        'clock',
        `the clocks of the server and ${name} are ${skew} s apart: tokens come too early or expire too soon`,
        'let NTP set both clocks; auth-jwt.clockTolerance is 60s',
      ),
    ]
  if (skew > SMALL_SKEW)
    return [note('clock', `the clocks of the server and ${name} are ${skew} s apart`, 'let NTP set both clocks')]
  return [ok('clock', `the clocks of the server and ${name} agree`)]
}

/** Other locations of the metadata that clients can stop at. */
function noteEarlier({ issuer, metadataUrl }: ServerInfo, tries: readonly Try[], { url: server }: Patient): Finding[] {
  const findings: Finding[] = []
  for (const { url, answer } of tries) {
    if (url === metadataUrl) continue
    if (answer.startsWith('200')) {
      findings.push(note(ISSUER, `${url} is not the metadata of ${issuer}; clients that use it cannot log in`))
      // An issuer on another origin can have only the OpenID Connect location.
    } else if (url === wellKnown('oauth-authorization-server', issuer) && url.startsWith(new URL(server).origin)) {
      const text = `${url} answered ${answer}: clients that know only RFC 8414 find no metadata`
      findings.push(note(ISSUER, text, ROOT_WELL_KNOWN))
    }
  }
  return findings
}

/** Checks the keys and the clock of an issuer, which clients do not read. client-view.ts reports the rest. */
async function checkIssuer(listed: string, patient: Patient): Promise<Finding[]> {
  const { ctx, tried } = createWatched(patient.url)
  let server: ServerInfo
  try {
    server = await discoverServer(ctx, listed, false, AbortSignal.timeout(60_000))
  } catch (error) {
    return patient.first.status === 401 ? [] : [findingOf(ISSUER, error, tried())]
  }
  const { issuer, metadataUrl = issuer } = server
  const document = await ask(metadataUrl)
  const clocks = checkClocks(await ask(patient.url), document, issuer)
  return [...noteEarlier(server, tried(), patient), await checkKeys(document.json ?? {}, issuer), ...clocks]
}

async function checkStandardLocation(standard: string, resource: unknown): Promise<Finding[]> {
  const found = await readDocument(standard)
  const why =
    typeof found === 'string'
      ? found
      : found.json['resource'] === resource
        ? undefined
        : `is of the resource ${String(found.json['resource'])}`
  if (why === undefined) return []
  return [note(CHECK, `${standard} ${why}: clients that do not read the challenge find no metadata`, ROOT_WELL_KNOWN)]
}

function checkDocument({ json, headers }: FoundDocument, place: string, url: string): Finding[] {
  const findings = [checkResource(json['resource'], url)]
  if (url.startsWith('https:') && place.startsWith('http:'))
    findings.push(
      wrong(CHECK, `the challenge contains ${place}: http behind https`, 'set http.publicUrl to the https address'),
    )
  if (!headers['content-type']?.startsWith('application/json'))
    findings.push(
      wrong(CHECK, `${place} is ${headers['content-type'] ?? 'of no type'}, not application/json`, REVERSE_PROXY),
    )
  if (headers['access-control-allow-origin'] !== '*')
    findings.push(
      wrong(
        CHECK,
        'web pages cannot read the document: no Access-Control-Allow-Origin: *',
        'configure the proxy to forward the header',
      ),
    )
  return findings
}

/** Checks all documents from the challenge to the issuers' keys. An open server without a document gets no findings. */
export async function checkMetadata(patient: Patient): Promise<Finding[]> {
  const { url, first } = patient
  const told = readChallenge(first.headers)?.get('resource_metadata')
  const standard = wellKnown('oauth-protected-resource', url)
  const place = told !== undefined && URL.canParse(told) ? told : standard
  const document = await readDocument(place)
  if (typeof document === 'string') {
    if (first.status !== 401) return []
    return [wrong(CHECK, `${place}: ${document}`, REVERSE_PROXY)]
  }
  const { resource, authorization_servers: listed } = document.json
  const location = place === standard ? [] : await checkStandardLocation(standard, resource)
  const servers = Array.isArray(listed)
    ? listed.filter(server => typeof server === 'string' && URL.canParse(server))
    : []
  const issuers = await Promise.all(servers.map(server => checkIssuer(server, patient)))
  return [...checkDocument(document, place, url), ...location, ...issuers.flat()]
}
