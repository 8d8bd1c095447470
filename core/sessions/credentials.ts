// Removes credentials from request headers before they are stored or sent to another node.
import type { IncomingHttpHeaders } from 'node:http'

const STEMS =
  'auth|cert|cookie|key|token|secret|jwt|assertion|sess(?:ion|id)|passw|passphrase|signature|credential|bearer|csrf|xsrf'
/** Short words match as whole words only. */
const WORDS = 'hmac|licen[cs]e|otp|pass|pat|pin|pwd|saml|sid|sig|ticket|totp'
const SECRET_PARTS = `${STEMS}|(?<![a-z\\d])(?:${WORDS})(?![a-z\\d])`
const SECRET_NAME = new RegExp(SECRET_PARTS)
/** Identity set by an authenticating proxy, such as `X-Auth-Request-Email`. */
const IDENTITY_NAME = /^x-auth(enticated)?-(request-)?(preferred-)?(user(-?id|-?name)?|email|groups?|roles?|subject)$/
/** GitHub, GitLab, OpenAI, Stripe, Slack, npm, PyPI, Hugging Face, Google, AWS. */
const TOKEN_PREFIXES =
  'gh[a-z]_|github_pat_|gl(?:agent|cbt|dt|ffct|ft|imt|oas|pat|ptt|rt|soat)-|sk[-_]|[pr]k_|xox[a-z]-|xapp-|npm_|pypi-|hf_|ya29\\.|AIza|A[KS]IA'
/** An HTTP scheme, a JWT, a PEM block, a vendor token, or a URL parameter with a credential name. */
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

/** Removes headers that are credentials by name or value. */
export const withoutCredentials = (headers: IncomingHttpHeaders): IncomingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name, value]) => !isSecret(name, value)))
