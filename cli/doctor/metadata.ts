// Checks metadata documents of the resource (RFC 9728) and its authorization servers (RFC 8414, OpenID Connect), and their keys.
import { discoverServer } from '../../client/discovery.ts'
import type { ServerInfo } from '../../client/stores.ts'
import { countText } from '../text.ts'
import { readChallenge } from './challenge.ts'
import { type Attempt, createRecorder, toFinding } from './client-view.ts'
import { type DoctorResponse, type Finding, failureText, reportOn, request, type Target } from './request.ts'

const { ok, note, wrong } = reportOn('metadata')
const ISSUER = 'identity provider'
const issuers = reportOn(ISSUER)
const clock = reportOn('clock')
const REVERSE_PROXY = 'Set http.publicUrl to the URL for clients, and let the proxy forward /.well-known to the host.'
const ROOT_WELL_KNOWN =
  'Configure the proxy to forward /.well-known/... at the root of this host name (docs/operating.md, "Behind a path prefix").'

const withoutSlash = (path: string) => (path === '/' ? '' : path.replace(/\/$/, ''))

function wellKnown(name: string, of: string): string {
  const { origin, pathname } = new URL(of)
  return `${origin}/.well-known/${name}${withoutSlash(pathname)}`
}

const sameUrl = (a: string, b: string) =>
  URL.canParse(a) && URL.canParse(b) && new URL(a).href.replace(/\/$/, '') === new URL(b).href.replace(/\/$/, '')

/** True if `resource` is a parent of `url`, such as one audience for a whole host. */
function isAbove(resource: string, url: string): boolean {
  if (!URL.canParse(resource)) return false
  const [above, here] = [new URL(resource), new URL(url)]
  return above.origin === here.origin && here.pathname.startsWith(`${withoutSlash(above.pathname)}/`)
}

function checkResource(resource: unknown, url: string): Finding {
  if (typeof resource !== 'string') return wrong('The document names no resource', REVERSE_PROXY)
  if (sameUrl(resource, url)) return ok(`resource is ${resource}`)
  if (isAbove(resource, url)) return note(`resource is ${resource}, for every URL below it`)
  const why = url.startsWith('https:') && resource.startsWith('http:') ? ': http behind https' : ''
  const found = `resource is ${resource}, but clients call ${url}${why} and must refuse it`
  return wrong(found, 'Set http.publicUrl or resource-metadata.resource to the URL for clients.')
}

type FoundDocument = DoctorResponse & { readonly json: Readonly<Record<string, unknown>> }

async function readDocument(url: string): Promise<FoundDocument | string> {
  try {
    const answer = await request(url, { headers: { Accept: 'application/json', Origin: 'https://doctor.example' } })
    if (answer.status !== 200) return `answered ${answer.status}`
    return answer.json ? { ...answer, json: answer.json } : 'is not a JSON object'
  } catch (error) {
    return failureText(error)
  }
}

async function checkKeys(metadata: Readonly<Record<string, unknown>>, issuer: string): Promise<Finding> {
  const { jwks_uri: uri } = metadata
  if (typeof uri !== 'string' || !URL.canParse(uri))
    return issuers.wrong(`${issuer} names no jwks_uri`, 'Set jwksUri of auth-jwt, or use auth-introspection.')
  const keys = await readDocument(uri)
  if (typeof keys === 'string')
    return issuers.wrong(`Keys at ${uri}: ${keys}`, 'Make this URL reachable from here and from the host.')
  const list = keys.json['keys']
  if (!Array.isArray(list) || list.length === 0)
    return issuers.wrong(`No keys at ${uri}`, 'Let the issuer publish its signing keys.')
  return issuers.ok(`${countText(list.length, 'key')} at ${uri}`)
}

/** Tolerated clock skew, seconds; `auth-jwt` allows 60. */
const SMALL_SKEW = 10
const TOLERANCE = 60

function checkClocks(server: DoctorResponse, issuer: DoctorResponse, name: string): Finding {
  const [localTime, remote] = [Date.parse(server.headers.date ?? ''), Date.parse(issuer.headers.date ?? '')]
  const skew = Math.round(Math.abs(localTime - remote) / 1_000)
  const clocks = `The clocks of the server and ${name}`
  if (Number.isNaN(skew)) return clock.note(`${clocks} cannot be compared: no Date header`)
  if (skew <= SMALL_SKEW) return clock.ok(`${clocks} agree`)
  const [found, fix] = [`${clocks} are ${skew} s apart`, 'Synchronize both clocks with NTP.']
  return skew > TOLERANCE ? clock.wrong(`${found}; auth-jwt.clockTolerance is 60s`, fix) : clock.note(found, fix)
}

/** Reports other locations of the metadata, at which clients can stop. */
function noteEarlier({ issuer, metadataUrl }: ServerInfo, all: readonly Attempt[], { url: server }: Target): Finding[] {
  const findings: Finding[] = []
  for (const { url, answer } of all) {
    if (url === metadataUrl) continue
    if (answer.startsWith('200')) {
      findings.push(issuers.note(`${url} is not the metadata of ${issuer}; clients that use it cannot log in`))
      // An issuer on another origin can have only the OpenID Connect location.
    } else if (url === wellKnown('oauth-authorization-server', issuer) && url.startsWith(new URL(server).origin)) {
      const text = `${url} answered ${answer}: clients that know only RFC 8414 find no metadata`
      findings.push(issuers.note(text, ROOT_WELL_KNOWN))
    }
  }
  return findings
}

/** Checks the keys and the clock of an issuer, which clients do not read. client-view.ts reports the rest. */
async function checkIssuer(listed: string, target: Target): Promise<Finding[]> {
  const { ctx, tried } = createRecorder(target.url)
  let server: ServerInfo
  try {
    server = await discoverServer(ctx, listed, false, AbortSignal.timeout(60_000))
  } catch (error) {
    return target.first.status === 401 ? [] : [toFinding(ISSUER, error, tried())]
  }
  const { issuer, metadataUrl = issuer } = server
  const document = await request(metadataUrl)
  const keys = await checkKeys(document.json ?? {}, issuer)
  return [...noteEarlier(server, tried(), target), keys, checkClocks(await request(target.url), document, issuer)]
}

async function checkStandardLocation(standard: string, resource: unknown): Promise<Finding[]> {
  const found = await readDocument(standard)
  if (typeof found !== 'string' && found.json['resource'] === resource) return []
  const why = typeof found === 'string' ? found : `is of the resource ${String(found.json['resource'])}`
  return [note(`${standard} ${why}: clients that do not read the challenge find no metadata`, ROOT_WELL_KNOWN)]
}

function checkDocument({ json, headers }: FoundDocument, place: string, url: string): Finding[] {
  const findings = [checkResource(json['resource'], url)]
  const { 'content-type': type = 'of no type', 'access-control-allow-origin': origin } = headers
  if (url.startsWith('https:') && place.startsWith('http:'))
    findings.push(wrong(`The challenge names ${place}: http behind https`, 'Set http.publicUrl to the https URL.'))
  if (!type.startsWith('application/json'))
    findings.push(wrong(`${place} is ${type}, not application/json`, REVERSE_PROXY))
  if (origin !== '*')
    findings.push(wrong('The document has no Access-Control-Allow-Origin: *', 'Let the proxy forward this header.'))
  return findings
}

/** Checks all documents from the challenge to the issuers' keys. An open server without a document gets no findings. */
export async function checkMetadata(target: Target): Promise<Finding[]> {
  const { url, first } = target
  const reported = readChallenge(first.headers)?.get('resource_metadata')
  const standard = wellKnown('oauth-protected-resource', url)
  const place = reported !== undefined && URL.canParse(reported) ? reported : standard
  const document = await readDocument(place)
  if (typeof document === 'string') return first.status === 401 ? [wrong(`${place}: ${document}`, REVERSE_PROXY)] : []
  const { resource, authorization_servers: listed } = document.json
  const location = place === standard ? [] : await checkStandardLocation(standard, resource)
  const servers = (Array.isArray(listed) ? listed : []).filter(one => typeof one === 'string' && URL.canParse(one))
  const found = await Promise.all(servers.map(server => checkIssuer(server, target)))
  return [...checkDocument(document, place, url), ...location, ...found.flat()]
}
