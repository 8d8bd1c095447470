// The doctor's external checks of a running server.
import { certificateFix } from '../../client/http.ts'
import { isLoopback } from '../../core/auth.ts'
import {
  ask,
  askForOlder,
  bearer,
  type Finding,
  failure,
  firstPiece,
  message,
  note,
  type OlderServer,
  ok,
  open,
  type Patient,
  wrong,
} from './ask.ts'
import { checkChallenge, readChallenge } from './challenge.ts'
import { examineAsClient } from './client-view.ts'
import { checkMetadata } from './metadata.ts'

const UNBUFFER =
  'configure the proxy to forward text/event-stream without buffering or compression (nginx: proxy_buffering off)'
const ROUND_TRIPS = 20

type Headers = Readonly<Record<string, string>>

/** `subscriptions/listen` acknowledges at once and stays open, so a buffering proxy never delivers the event. */
async function firstEvent(url: string, headers: Headers, signal: AbortSignal): Promise<Finding> {
  const response = await open(url, { ...message('subscriptions/listen', { notifications: {} }, headers), signal })
  const { statusCode, headers: sent } = response
  if (!sent['content-type']?.startsWith('text/event-stream')) {
    response.destroy()
    return note('stream', `not checked: the server opens no stream here (${statusCode})`)
  }
  if ((await firstPiece(response)) === undefined)
    return wrong('stream', 'a stream opens, but no event arrives', UNBUFFER)
  return ok('stream', 'events arrive without delay')
}

async function manyRoundTrips(url: string, headers: Headers, signal: AbortSignal): Promise<Finding> {
  for (let trip = 0; trip < ROUND_TRIPS; trip++) {
    await ask(url, { ...message('tools/list', {}, headers), signal })
  }
  return wrong(
    'stream',
    `${ROUND_TRIPS} later requests were answered before the first event of a stream arrived`,
    UNBUFFER,
  )
}

async function checkStream({ url, token, first }: Patient): Promise<Finding[]> {
  if (token === undefined && first.status === 401)
    return [note('stream', 'not checked: streams require a token; pass --token')]
  const headers = bearer(token)
  const over = new AbortController()
  try {
    return [await Promise.race([firstEvent(url, headers, over.signal), manyRoundTrips(url, headers, over.signal)])]
  } catch (error) {
    return [wrong('stream', `cannot open a stream: ${failure(error)}`, UNBUFFER)]
  } finally {
    over.abort()
  }
}

const FOREIGN = 'doctor.invalid'

/** Behind a proxy, a foreign host name may never reach the host, so any refusal is accepted. */
async function checkGuard({ url, first }: Patient): Promise<Finding[]> {
  const local = isLoopback(new URL(url).hostname)
  const [host, origin] = await Promise.all([
    ask(url, message('tools/list', {}, { Host: FOREIGN })),
    ask(url, message('tools/list', {}, { Origin: `https://${FOREIGN}` })),
  ])
  const lets = (status: number) => status === first.status
  const rebound = 'set http.publicUrl or http.allowedHosts to refuse other names'
  const findings = [
    !lets(host.status)
      ? ok('host guard', `a foreign Host gets ${host.status}`)
      : local
        ? wrong('host guard', 'a foreign Host is accepted: web pages can reach this server by DNS rebinding', rebound)
        : note('host guard', 'a foreign Host is accepted', rebound),
    lets(origin.status)
      ? wrong(
          'host guard',
          'web pages of any origin are accepted',
          'list origins in http.allowedOrigins or in a policy of cors',
        )
      : ok('host guard', `a foreign Origin gets ${origin.status}`),
  ]
  return findings
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

const words = (header: string | undefined) => new Set((header ?? '').toLowerCase().split(/\s*,\s*/))
const lacking = (wanted: readonly string[], header: string | undefined) => {
  const has = words(header)
  // A wildcard never covers Authorization (Fetch, "CORS-unsafe request-header names").
  return wanted.filter(name => !has.has(name.toLowerCase()) && !(has.has('*') && name !== 'Authorization'))
}

/** Whether a page of `origin` can call the server. Without a given origin, a refusal can be intended. */
async function checkCors({ url, origin: named }: Patient): Promise<Finding[]> {
  const origin = named ?? new URL(url).origin
  const preflight = await ask(url, {
    method: 'OPTIONS',
    headers: {
      Origin: origin,
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': SENT.join(',').toLowerCase(),
    },
  })
  const allowed = preflight.headers['access-control-allow-origin']
  if (allowed !== '*' && allowed !== origin) {
    const text = `pages of ${origin} cannot call: the preflight gets ${preflight.status}`
    const fix = 'give the route a `cors` policy that lists the origin'
    return [
      named === undefined
        ? note('cors', `${text}; use --origin to check another origin`, fix)
        : wrong('cors', text, fix),
    ]
  }
  const findings: Finding[] = []
  const headers = lacking(SENT, preflight.headers['access-control-allow-headers'])
  if (headers.length > 0)
    findings.push(
      wrong('cors', `the preflight does not allow ${headers.join(', ')}`, 'let the plugin cors answer preflights'),
    )
  if (lacking(['POST'], preflight.headers['access-control-allow-methods']).length > 0)
    findings.push(wrong('cors', 'the preflight does not allow POST', 'let the plugin cors answer preflights'))
  const answer = await ask(url, message('tools/list', {}, { Origin: origin }))
  if (answer.headers['access-control-allow-origin'] === undefined)
    findings.push(
      wrong(
        'cors',
        `the response (${answer.status}) has no CORS header: the page cannot read it`,
        'configure the proxy to forward it, including on errors',
      ),
    )
  const hidden = lacking(READ, answer.headers['access-control-expose-headers'])
  if (hidden.length > 0)
    findings.push(
      wrong(
        'cors',
        `the page cannot read ${hidden.join(', ')}`,
        'list them in Access-Control-Expose-Headers, as the plugin cors does',
      ),
    )
  return findings.length > 0 ? findings : [ok('cors', `pages of ${origin} can call`)]
}

function checkFirst({ url, first: { status, headers, text } }: Patient): Finding | undefined {
  const { location } = headers
  if (status >= 300 && status < 400)
    return wrong(
      'address',
      `${url} redirects to ${location}; clients do not follow it with a token`,
      `give clients the URL ${location}`,
    )
  if (status === 403)
    return wrong(
      'address',
      `403 without a token: ${text.slice(0, 200)}`,
      'add the name in the URL to http.allowedHosts, or set http.publicUrl; see the log for the refused name',
    )
  if (status === 404)
    return wrong(
      'address',
      `nothing is served at ${url}`,
      'check `routes` in the config, and the path that a proxy adds or removes',
    )
  if (status !== 200 && status !== 401)
    return wrong(
      'address',
      `tools/list gets ${status}: ${text.slice(0, 200)}`,
      'enable transport-streamable; see the log',
    )
  return undefined
}

function checkScheme({ url }: Patient): Finding[] {
  const { protocol, hostname } = new URL(url)
  if (protocol === 'https:' || isLoopback(hostname)) return []
  return [
    wrong(
      'address',
      `${url} is not https: anyone on the network path can read tokens`,
      'terminate TLS in front of the host and set http.publicUrl',
    ),
  ]
}

async function checkToken({ url, token }: Patient): Promise<Finding[]> {
  if (token === undefined) return []
  const { status, headers } = await ask(url, message('tools/list', {}, bearer(token)))
  if (status === 200) return [ok('token', 'the token is accepted')]
  if (status !== 401 && status !== 403 && (await askForOlder(url, bearer(token))))
    return [ok('token', 'the token is accepted')]
  const challenge = readChallenge(headers)
  const why = challenge?.get('error_description') ?? challenge?.get('error') ?? 'no reason given'
  return [wrong('token', `the token gets ${status}: ${why}`, 'mcp-host explain --token shows what it lacks')]
}

const CHECKS: ReadonlyArray<readonly [string, (patient: Patient) => Finding[] | Promise<Finding[]>]> = [
  ['address', checkScheme],
  ['challenge', checkChallenge],
  ['metadata', checkMetadata],
  ['token', checkToken],
  ['host guard', checkGuard],
  ['cors', checkCors],
  ['stream', checkStream],
  ['client', ({ url }) => examineAsClient(url)],
]

async function olderServer({ url, first: { status } }: Patient): Promise<OlderServer | undefined> {
  if (![400, 404, 405, 406, 415].includes(status)) return undefined
  return askForOlder(url).catch(() => undefined)
}

const describeOlder = (url: string, { revision, transport }: OlderServer): Finding =>
  note('address', `${url} speaks ${transport} of ${revision}, not 2026-07-28`)

function fixUnreached(url: string, error: unknown): string {
  const { code } = error as NodeJS.ErrnoException
  // A port with `http.tls` closes plain HTTP connections.
  const isCut = url.startsWith('http:') && code === 'ECONNRESET'
  if (isCut)
    return `the connection was closed without an answer; if the port speaks TLS, try ${url.replace(/^http:/, 'https:')}`
  return certificateFix(error) ?? 'start the host, and check http.host and http.port'
}

export async function examine(url: string, options: { token?: string; origin?: string } = {}): Promise<Finding[]> {
  let patient: Patient
  try {
    const first = await ask(url, message('tools/list'))
    patient = { url, token: options.token, origin: options.origin, first }
  } catch (error) {
    return [wrong('address', `${url} cannot be reached: ${failure(error)}`, fixUnreached(url, error))]
  }
  const older = await olderServer(patient)
  const broken = older ? undefined : checkFirst(patient)
  if (broken) return [broken]
  const findings = [older ? describeOlder(url, older) : ok('address', `${url} answers ${patient.first.status}`)]
  for (const [name, check] of CHECKS) {
    try {
      findings.push(...(await check(patient)))
    } catch (error) {
      findings.push(note(name, `the check failed: ${failure(error)}`))
    }
  }
  return findings
}
