// Whose a session is, whether a request comes from the same, and what of it may be written down.
import type { IncomingHttpHeaders } from 'node:http'
import type { RequestFacts } from '../mcp/call.ts'
import { holderOf } from '../mcp/client-limits.ts'
import type { Owner } from './session-id.ts'
import type { SessionOpening } from './session-record.ts'

/** Who comes, and where. */
export type Caller = Pick<RequestFacts, 'route' | 'params' | 'user' | 'ip' | 'admitted'>

export const ownerOf = ({ route, user }: Caller): Owner => ({ route: route.path, user })

export const sameParams = (a: Caller['params'], b: Caller['params']) =>
  Object.keys({ ...a, ...b }).every(name => a[name] === b[name])

/** Credential headers have one of these in their name. */
const STEMS =
  'auth|cert|cookie|key|token|secret|jwt|assertion|sess(?:ion|id)|passw|passphrase|signature|credential|bearer|csrf|xsrf'
/** Too short or too common inside other words, so these match as whole words. */
const WORDS = 'hmac|licen[cs]e|otp|pass|pat|pin|pwd|saml|sid|sig|ticket|totp'
const SECRET_PARTS = `${STEMS}|(?<![a-z\\d])(?:${WORDS})(?![a-z\\d])`
const SECRET_NAME = new RegExp(SECRET_PARTS)
/** Says who, and proves nothing: what a proxy in front found out, such as `X-Auth-Request-Email`. */
const IDENTITY_NAME = /^x-auth(enticated)?-(request-)?(preferred-)?(user(-?id|-?name)?|email|groups?|roles?|subject)$/
/** Prefixes by which vendors mark their tokens: GitHub, GitLab, OpenAI, Stripe, Slack, npm, PyPI, Hugging Face, Google, AWS. */
const TOKEN_PREFIXES =
  'gh[a-z]_|github_pat_|gl(?:agent|cbt|dt|ffct|ft|imt|oas|pat|ptt|rt|soat)-|sk[-_]|[pr]k_|xox[a-z]-|xapp-|npm_|pypi-|hf_|ya29\\.|AIza|A[KS]IA'
/** Credentials under any name: an HTTP scheme, a JWT, a PEM block, a vendor's token, or a URL parameter with a credential's name. */
const SECRET_VALUES = [
  /^\s*(basic|bearer|digest|dpop|negotiate|ntlm|hoba|mutual|aws4-hmac-sha256)\s/i,
  /(?<![\w-])eyJ[\w-]{8,}\.[\w-]+\./,
  /-----BEGIN/,
  new RegExp(`(?<![\\w-])(?:${TOKEN_PREFIXES})[\\w-]{16,}`),
  new RegExp(`[?&#][\\w.-]{0,40}(?:${SECRET_PARTS}|code)[\\w.-]{0,40}=`, 'i'),
]

function isSecret(name: string, value: string | readonly string[] | undefined): boolean {
  const lower = name.toLowerCase()
  if (SECRET_NAME.test(lower) && !IDENTITY_NAME.test(lower)) return true
  return [value ?? ''].flat().some(one => SECRET_VALUES.some(secret => secret.test(one)))
}

/** What may be written down of a request's headers, and told to another node: what is no credential by its name or value. */
export const withoutCredentials = (headers: IncomingHttpHeaders): IncomingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name, value]) => !isSecret(name, value)))

const NO_HEADERS: IncomingHttpHeaders = Object.freeze({})

/** What a session is opened with, as it may be written down; its headers only where another node may need them. */
export const openingOf = (facts: RequestFacts, transport: string, shared: boolean): SessionOpening => ({
  transport,
  route: facts.route.path,
  params: facts.params,
  holder: holderOf(facts),
  user: facts.user,
  ip: facts.ip,
  headers: shared ? withoutCredentials(facts.headers) : NO_HEADERS,
})
