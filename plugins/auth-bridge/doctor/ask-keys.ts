// Fetches the keys that the provider signs ID tokens with, and compares its clock with ours: a login stands on both.
import { shownUrl } from '../../../core/auth.ts'
import { isObject } from '../../../core/index.ts'
import { jsonOf, WRONG_PAGE } from '../upstream/ask.ts'
import type { Connection } from '../upstream/connection.ts'
import { type Findings, failed, ok, wrong } from './finding.ts'

const KEYS = 'keys'
const CLOCK = 'clock'
/** Milliseconds. */
const MAX_SKEW = 60_000

/** A public key that signatures can be checked with (RFC 7517, section 4). */
function isForSignatures(key: unknown): boolean {
  if (!isObject(key) || !['RSA', 'EC', 'OKP'].includes(String(key['kty']))) return false
  const { use, key_ops: operations } = key
  return (use === undefined || use === 'sig') && (!Array.isArray(operations) || operations.includes('verify'))
}

async function readKeys(response: Response, what: string): Promise<Findings> {
  if (response.status !== 200) return [wrong(KEYS, `${what} answers ${response.status}`, WRONG_PAGE)]
  const body = await jsonOf(response)
  const keys: unknown = isObject(body) ? body['keys'] : undefined
  if (!Array.isArray(keys)) return [wrong(KEYS, `${what} is no set of keys`, WRONG_PAGE)]
  const count = keys.filter(isForSignatures).length
  if (count > 0) return [ok(KEYS, `${what} has ${count === 1 ? 'a key' : `${count} keys`} for signatures`)]
  const found = keys.length === 0 ? 'is an empty set of keys' : 'has no key for signatures'
  const fix = 'give the provider a signing key (RSA or EC), with which it signs ID tokens'
  return [wrong(KEYS, `${what} ${found}: no ID token can be checked`, fix)]
}

function writeTime(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1_000)
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`
}

/** `asked` and `answered`: by our clock, in milliseconds. */
function compareClocks({ headers }: Response, asked: number, answered: number): Findings {
  // Age: it was made so many seconds ago, and kept on the way.
  const made = Date.parse(headers.get('date') ?? '')
  const theirs = made + (Number(headers.get('age') ?? 0) || 0) * 1_000
  if (Number.isNaN(theirs)) return []
  // Its time has whole seconds.
  const behind = theirs - answered
  const ahead = asked - (theirs + 1_000)
  const skew = Math.max(behind, ahead)
  if (skew <= MAX_SKEW) return [ok(CLOCK, "this machine's clock and the provider's agree")]
  const how = `${writeTime(skew)} ${behind > ahead ? 'behind' : 'ahead of'}`
  const fix = 'set the clock of this machine by NTP (chrony, systemd-timesyncd); if it is right, that of the provider'
  return [wrong(CLOCK, `this machine's clock is ${how} that of the provider: tokens seem to be of another time`, fix)]
}

/** Of OpenID Connect; plain OAuth has neither. */
export async function checkKeys({ ask, server, settings }: Connection): Promise<Findings> {
  const url = server.jwks_uri
  if (!settings.kind.openid || url === undefined) return []
  const asked = Date.now()
  try {
    const response = await ask(url, { headers: { Accept: 'application/json' } })
    const clocks = compareClocks(response, asked, Date.now())
    return [...(await readKeys(response, shownUrl(url))), ...clocks]
  } catch (error) {
    return [failed(KEYS, error)]
  }
}
