// The doctor's external checks of a running server.
import { certificateFix } from '../../client/http.ts'
import { isLoopback } from '../../core/auth.ts'
import { checkChallenge, readChallenge } from './challenge.ts'
import { examineAsClient } from './client-view.ts'
import { checkMetadata } from './metadata.ts'
import {
  bearer,
  createRequest,
  detectLegacy,
  type Finding,
  failureText,
  firstChunk,
  type LegacyServer,
  open,
  reportOn,
  request,
  type Target,
} from './request.ts'

const address = reportOn('address')
const tokens = reportOn('token')
const guard = reportOn('host guard')
const cors = reportOn('cors')
const stream = reportOn('stream')

const UNBUFFER = 'Let the proxy forward text/event-stream unbuffered and uncompressed (nginx: proxy_buffering off).'
const ROUND_TRIPS = 20

type Headers = Readonly<Record<string, string>>

/**
 * `subscriptions/listen` sends its first event at once and stays open, so a buffering proxy never delivers that event.
 */
async function firstEvent(url: string, headers: Headers, signal: AbortSignal): Promise<Finding> {
  const response = await open(url, { ...createRequest('subscriptions/listen', { notifications: {} }, headers), signal })
  const { statusCode, headers: responseHeaders } = response
  if (!responseHeaders['content-type']?.startsWith('text/event-stream')) {
    response.destroy()
    return stream.note(`not checked: the server opens no stream here (${statusCode})`)
  }
  if ((await firstChunk(response)) === undefined) return stream.wrong('A stream opens and delivers nothing', UNBUFFER)
  return stream.ok('The first event arrives while its stream is open')
}

async function manyRoundTrips(url: string, headers: Headers, signal: AbortSignal): Promise<Finding> {
  for (let roundTrip = 0; roundTrip < ROUND_TRIPS; roundTrip++) {
    await request(url, { ...createRequest('tools/list', {}, headers), signal })
  }
  return stream.wrong(`${ROUND_TRIPS} later requests were answered before the first event of a stream`, UNBUFFER)
}

async function checkStream({ url, token, first }: Target): Promise<Finding[]> {
  if (token === undefined && first.status === 401)
    return [stream.note('not checked: streams need a token; pass --token')]
  const headers = bearer(token)
  const stop = new AbortController()
  try {
    return [await Promise.race([firstEvent(url, headers, stop.signal), manyRoundTrips(url, headers, stop.signal)])]
  } catch (error) {
    return [stream.wrong(`A stream does not open: ${failureText(error)}`, UNBUFFER)]
  } finally {
    stop.abort()
  }
}

const FOREIGN = 'doctor.invalid'

/** A proxy can stop requests for foreign host names, so any refusal is accepted. */
async function checkGuard({ url, first }: Target): Promise<Finding[]> {
  const [host, origin] = await Promise.all([
    request(url, createRequest('tools/list', {}, { Host: FOREIGN })),
    request(url, createRequest('tools/list', {}, { Origin: `https://${FOREIGN}` })),
  ])
  const served = 'A foreign Host is served'
  const fix = 'Set http.publicUrl or http.allowedHosts, so that no other name is served.'
  const hostFinding = isLoopback(new URL(url).hostname)
    ? guard.wrong(`${served}: a page can reach this server under its own name`, fix)
    : guard.note(served, fix)
  return [
    host.status === first.status ? hostFinding : guard.ok(`A foreign Host gets ${host.status}`),
    origin.status === first.status
      ? guard.wrong('A page of any origin is served', 'List origins in http.allowedOrigins or in a policy of cors.')
      : guard.ok(`A foreign origin gets ${origin.status}`),
  ]
}

const SENT = [
  'Authorization',
  'Content-Type',
  'MCP-Protocol-Version',
  'Mcp-Method',
  'Mcp-Name',
  'Mcp-Session-Id',
  'Last-Event-ID',
]
const READ = ['WWW-Authenticate', 'Mcp-Session-Id']

const findMissing = (wanted: readonly string[], header: string | undefined) => {
  const has = new Set((header ?? '').toLowerCase().split(/\s*,\s*/))
  // A wildcard never covers Authorization (Fetch, "CORS-unsafe request-header names").
  return wanted.filter(name => !has.has(name.toLowerCase()) && !(has.has('*') && name !== 'Authorization'))
}

/** Checks whether a page of `origin` can call the server. Without a configured origin, a refusal can be intended. */
async function checkCors({ url, origin: named }: Target): Promise<Finding[]> {
  const origin = named ?? new URL(url).origin
  const preflight = await request(url, {
    method: 'OPTIONS',
    headers: {
      Origin: origin,
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': SENT.join(',').toLowerCase(),
    },
  })
  const allowed = preflight.headers['access-control-allow-origin']
  if (allowed !== '*' && allowed !== origin) {
    const text = `Pages of ${origin} cannot call: the preflight gets ${preflight.status}`
    const fix = 'Give the route a `cors` policy that lists the origin.'
    return [named === undefined ? cors.note(`${text}; --origin checks another page`, fix) : cors.wrong(text, fix)]
  }
  const findings: Finding[] = []
  const missing = [
    ...findMissing(['POST'], preflight.headers['access-control-allow-methods']),
    ...findMissing(SENT, preflight.headers['access-control-allow-headers']),
  ]
  if (missing.length > 0)
    findings.push(cors.wrong(`The preflight does not allow ${missing.join(', ')}`, 'Let the plugin cors handle it.'))
  const response = await request(url, createRequest('tools/list', {}, { Origin: origin }))
  if (response.headers['access-control-allow-origin'] === undefined)
    findings.push(cors.wrong(`The response (${response.status}) has no CORS header`, 'Let the proxy forward it.'))
  const hidden = findMissing(READ, response.headers['access-control-expose-headers'])
  if (hidden.length > 0)
    findings.push(cors.wrong(`Pages cannot read ${hidden.join(', ')}`, 'Set Access-Control-Expose-Headers; cors does.'))
  return findings.length > 0 ? findings : [cors.ok(`Pages of ${origin} can call`)]
}

function checkFirst({ url, first: { status, headers, text, canBeMcp } }: Target): Finding | undefined {
  const { location } = headers
  const { wrong } = address
  if (status >= 300 && status < 400)
    return wrong(`${url} redirects to ${location}; clients do not follow with a token`, `Give clients ${location}.`)
  if (status === 403)
    return wrong(`403: ${text.slice(0, 200)}`, 'Add the name to http.allowedHosts, or set http.publicUrl. See the log.')
  if (status === 404)
    return wrong(
      `Nothing is served at ${url}`,
      'See `routes` of the config, and the path that a proxy adds or removes.',
    )
  if (status < 500 && status !== 401 && !canBeMcp)
    return wrong(`${url} is not an MCP server: ${status} without a JSON-RPC message`, 'Check the URL.')
  if (status !== 200 && status !== 401)
    return wrong(`tools/list gets ${status}: ${text.slice(0, 200)}`, 'Enable transport-streamable. See the log.')
  return undefined
}

function checkScheme({ url }: Target): Finding[] {
  const { protocol, hostname } = new URL(url)
  if (protocol === 'https:' || isLoopback(hostname)) return []
  return [
    address.wrong(
      `${url} is not https: tokens can be intercepted`,
      'Terminate TLS before the host and set http.publicUrl.',
    ),
  ]
}

async function checkToken({ url, token }: Target): Promise<Finding[]> {
  if (token === undefined) return []
  const { status, headers } = await request(url, createRequest('tools/list', {}, bearer(token)))
  const isOlder = async () => status !== 401 && status !== 403 && (await detectLegacy(url, bearer(token))) !== undefined
  if (status === 200 || (await isOlder())) return [tokens.ok('The token is accepted')]
  const challenge = readChallenge(headers)
  const why = challenge?.get('error_description') ?? challenge?.get('error') ?? 'no reason given'
  return [tokens.wrong(`The token gets ${status}: ${why}`, 'mcp-host explain --token shows what it lacks.')]
}

const CHECKS: ReadonlyArray<readonly [string, (target: Target) => Finding[] | Promise<Finding[]>]> = [
  ['address', checkScheme],
  ['challenge', checkChallenge],
  ['metadata', checkMetadata],
  ['token', checkToken],
  ['host guard', checkGuard],
  ['cors', checkCors],
  ['stream', checkStream],
  ['client', ({ url }) => examineAsClient(url)],
]

async function detectLegacyServer({ url, first: { status } }: Target): Promise<LegacyServer | undefined> {
  if (![400, 404, 405, 406, 415].includes(status)) return undefined
  return detectLegacy(url).catch(() => undefined)
}

const describeLegacy = (url: string, { revision, transport }: LegacyServer): Finding =>
  address.note(`${url} supports ${transport} of ${revision}, not 2026-07-28`)

function unreachableFix(url: string, error: unknown): string {
  const { code } = error as NodeJS.ErrnoException
  // A port with `http.tls` closes plain HTTP connections.
  if (url.startsWith('http:') && code === 'ECONNRESET')
    return `The connection was closed. If the port uses TLS, try ${url.replace(/^http:/, 'https:')}.`
  return certificateFix(error) ?? 'Start the host, and check http.host and http.port.'
}

export async function examine(
  url: string,
  { token, origin }: { token?: string | undefined; origin?: string | undefined } = {},
): Promise<Finding[]> {
  let target: Target
  try {
    const first = await request(url, createRequest('tools/list'))
    target = { url, token, origin, first }
  } catch (error) {
    return [address.wrong(`${url} cannot be reached: ${failureText(error)}`, unreachableFix(url, error))]
  }
  const legacy = await detectLegacyServer(target)
  const failed = legacy ? undefined : checkFirst(target)
  if (failed) return [failed]
  const findings = [legacy ? describeLegacy(url, legacy) : address.ok(`${url} responds with ${target.first.status}`)]
  for (const [name, check] of CHECKS) {
    try {
      findings.push(...(await check(target)))
    } catch (error) {
      findings.push(reportOn(name).note(`the check failed: ${failureText(error)}`))
    }
  }
  return findings
}
