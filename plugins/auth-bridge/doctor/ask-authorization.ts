// Asks the authorization endpoint as a browser would that is signed in nowhere, without following where it leads: what comes
// back shows whether the provider knows the application and its redirect URI.
import { randomBytes } from 'node:crypto'
import { errorText } from '../../../core/index.ts'
import { fixOfConnection } from '../upstream/ask.ts'
import type { Connection } from '../upstream/connection.ts'
import { explain } from '../upstream/explain.ts'
import { refusalWords, safeText } from '../upstream/refusal.ts'
import { begin } from '../upstream/sign-in.ts'
import { type Findings, note, ok, withRedirectUri, wrong } from './finding.ts'
import { refusalInAddress, refusalOnPage } from './signals.ts'

const CHECK = 'redirect URI'
const REQUEST = 'authorization request'
/** Milliseconds. */
const TIMEOUT = 10_000
const MAX_TEXT = 1_048_576

/** Nobody is signed in: this is how a provider says that everything else is in order. */
const NOBODY = /^(?:login|interaction|consent|account_selection)_required$|^immediate_failed$/

interface Reply {
  readonly status: number
  /** Where it sends the browser. */
  readonly target: URL | undefined
  readonly text: string
}

async function readSome(response: Response): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > MAX_TEXT) break
  }
  return text
}

async function ask(url: string): Promise<Reply> {
  // Their words are looked for in English.
  const headers = { Accept: 'text/html', 'Accept-Language': 'en', 'User-Agent': 'mcp-host doctor' }
  const response = await fetch(url, { redirect: 'manual', headers, signal: AbortSignal.timeout(TIMEOUT) })
  const location = response.headers.get('location')
  const target = location !== null && URL.canParse(location, url) ? new URL(location, url) : undefined
  return { status: response.status, target, text: await readSome(response) }
}

const isAt = (target: URL, redirectUri: string) => {
  const { origin, pathname } = new URL(redirectUri)
  return target.origin === origin && target.pathname === pathname
}

/** The provider sent the browser back: it knows who asks, and where to send the answer. */
function readCallback(
  { settings, server }: Connection,
  target: URL,
  redirectUri: string,
  secrets: readonly string[],
): Findings {
  const [code, description, iss] = ['error', 'error_description', 'iss'].map(
    name => target.searchParams.get(name) ?? undefined,
  )
  const known = ok(CHECK, `the provider knows the client id, and sends people back to ${redirectUri}`)
  if (settings.kind.openid && iss !== undefined && iss !== server.issuer)
    return [known, wrong(REQUEST, 'its answer names another issuer (iss) than its metadata', 'check `issuer`')]
  if (code === undefined || NOBODY.test(code)) return [known, ok(REQUEST, 'it takes the scopes and parameters')]
  const said = refusalWords({ code, description }, secrets)
  // Some do not know `prompt=none`; people are not asked with it.
  if (code === 'invalid_request' && /prompt/i.test(description ?? ''))
    return [known, note(REQUEST, `it cannot be tried without a person: ${said}`)]
  const fix = explain({ type: settings.type, code, description })?.fix
  return [
    known,
    wrong(REQUEST, `the provider refuses what is asked for: ${said}`, fix ?? 'correct `scopes` and `parameters`'),
  ]
}

function readPage(
  { settings: { type } }: Connection,
  reply: Reply,
  redirectUri: string,
  secrets: readonly string[],
): Findings {
  const { status, target, text } = reply
  const register = `check clientId, and register ${redirectUri} with the application at the provider`
  const refusal = target ? refusalInAddress(target) : refusalOnPage(text, status >= 400)
  if (refusal) {
    const fix = explain({ type, ...refusal })?.fix
    // The description is what stands there; the code may be ours for it.
    const said = safeText(refusal.description ?? refusal.code ?? 'no reason', secrets)
    return [wrong(CHECK, `the provider shows people an error: ${said}`, withRedirectUri(fix ?? register, redirectUri))]
  }
  if (status >= 400) {
    const why = `the authorization endpoint answers ${status}, and nothing that is known stands on its page`
    return [wrong(CHECK, why, register)]
  }
  const why = 'the provider shows its login page first: whether it knows the redirect URI shows when somebody signs in'
  return [note(CHECK, why, `${redirectUri} must be registered there`)]
}

/** `redirectUri`: where people come back to. */
export async function checkAuthorization(connection: Connection, redirectUri: string): Promise<Findings> {
  const state = randomBytes(16).toString('base64url')
  const { url, underWay } = await begin(connection, { redirectUri, state })
  const address = new URL(url)
  address.searchParams.set('prompt', 'none')
  const { clientSecret = '' } = connection.settings
  const secrets = [clientSecret, state, underWay.codeVerifier]
  let reply: Reply
  try {
    reply = await ask(address.href)
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
    const fix = fixOfConnection(error) ?? 'let this machine reach the provider: name server, proxy, firewall'
    return [wrong(CHECK, `the authorization endpoint cannot be asked: ${safeText(errorText(cause), secrets)}`, fix)]
  }
  const { target } = reply
  return target && isAt(target, redirectUri)
    ? readCallback(connection, target, redirectUri, secrets)
    : readPage(connection, reply, redirectUri, secrets)
}
