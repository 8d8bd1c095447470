// The doctor's round: one look after the other, each from outside, as a client would.
import { certificateFix } from '../../client/http.ts'
import { isLoopback } from '../../core/auth.ts'
import { ask, bearer, failure, message } from './ask.ts'
import { checkChallenge, readChallenge } from './challenge.ts'
import { checkCors, checkGuard } from './edges.ts'
import { type Finding, note, ok, wrong } from './finding.ts'
import { checkMetadata } from './metadata.ts'
import { askForOlder, type OlderServer } from './older.ts'
import type { Patient } from './patient.ts'
import { checkStream } from './stream.ts'

const CHECK = 'address'

/** What the first answer says; `undefined` where the others make sense. */
function checkFirst({ url, first: { status, headers, text } }: Patient): Finding | undefined {
  const { location } = headers
  if (status >= 300 && status < 400)
    return wrong(
      CHECK,
      `${url} leads on to ${location}; clients do not follow with a token`,
      `give clients the address ${location}`,
    )
  if (status === 403)
    return wrong(
      CHECK,
      `403 without a token shown: ${text.slice(0, 200)}`,
      'add the name in the URL to http.allowedHosts, or set http.publicUrl; the log says what was refused',
    )
  if (status === 404)
    return wrong(
      CHECK,
      `nothing is served at ${url}`,
      'see `routes` in the config, and the path that a proxy adds or takes away',
    )
  if (status !== 200 && status !== 401)
    return wrong(
      CHECK,
      `tools/list is answered ${status}: ${text.slice(0, 200)}`,
      'switch on transport-streamable; the log says more',
    )
  return undefined
}

function checkScheme({ url }: Patient): Finding[] {
  const { protocol, hostname } = new URL(url)
  if (protocol === 'https:' || isLoopback(hostname)) return []
  return [
    wrong(
      CHECK,
      `${url} is not https: tokens can be read on the way`,
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
  return [wrong('token', `the token is answered ${status}: ${why}`, 'mcp-host explain --token says what it lacks')]
}

/** Each check with its name in findings. */
const CHECKS: ReadonlyArray<readonly [string, (patient: Patient) => Finding[] | Promise<Finding[]>]> = [
  [CHECK, checkScheme],
  ['challenge', checkChallenge],
  ['metadata', checkMetadata],
  ['token', checkToken],
  ['host guard', checkGuard],
  ['cors', checkCors],
  ['stream', checkStream],
]

/** A server that does not know a request of 2026-07-28 may know the handshake of its predecessors. */
async function olderServer({ url, first: { status } }: Patient): Promise<OlderServer | undefined> {
  if (![400, 404, 405, 406, 415].includes(status)) return undefined
  return askForOlder(url).catch(() => undefined)
}

const describeOlder = (url: string, { revision, transport }: OlderServer): Finding =>
  note(CHECK, `${url} speaks ${transport} of ${revision ?? 'an older revision'}, not 2026-07-28`)

/** What to do where no answer came. */
function fixUnreached(url: string, error: unknown): string {
  const { code } = error as NodeJS.ErrnoException
  // As a port with `http.tls` answers plain HTTP.
  const isCut = url.startsWith('http:') && code === 'ECONNRESET'
  if (isCut)
    return `the connection was closed without an answer; if the port speaks TLS, try ${url.replace(/^http:/, 'https:')}`
  return certificateFix(error) ?? 'start the host, and look at http.host and http.port'
}

/** Looks at a running server. A check that cannot be made is a finding too. */
export async function examine(url: string, options: { token?: string; origin?: string } = {}): Promise<Finding[]> {
  let patient: Patient
  try {
    const first = await ask(url, message('tools/list'))
    patient = { url, token: options.token, origin: options.origin, first }
  } catch (error) {
    return [wrong(CHECK, `${url} cannot be reached: ${failure(error)}`, fixUnreached(url, error))]
  }
  const older = await olderServer(patient)
  const broken = older ? undefined : checkFirst(patient)
  if (broken) return [broken]
  const findings = [older ? describeOlder(url, older) : ok(CHECK, `${url} answers ${patient.first.status}`)]
  for (const [name, check] of CHECKS) {
    try {
      findings.push(...(await check(patient)))
    } catch (error) {
      findings.push(note(name, `the check failed: ${failure(error)}`))
    }
  }
  return findings
}
