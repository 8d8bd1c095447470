// Certificates of a connection to Redis: read from their files whenever a connection is made, so that a renewed one is
// used without a restart; and what to do about those that one side does not accept. For settings.ts and the links.
import { readFileSync } from 'node:fs'

/** Each as PEM, or as the absolute path of a PEM file. */
export interface RedisTls {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly servername?: string
}

const PEM = '-----BEGIN'

export const isPem = (text: string): boolean => text.includes(PEM)

/** The same with the files' contents as they are now. Throws an Error that names what cannot be read, and nothing of it. */
export function readTls({ servername, ...given }: RedisTls): RedisTls {
  const read = Object.entries(given).flatMap(([key, text]) => (text === undefined ? [] : [[key, readPem(key, text)]]))
  return { ...Object.fromEntries(read), ...(servername !== undefined && { servername }) }
}

function readPem(key: string, text: string): string {
  if (isPem(text)) return text
  let found: string
  try {
    found = readFileSync(text, 'utf8')
  } catch (cause) {
    // What is here may be no name of a file, but the key itself in another encoding.
    const { code } = cause as NodeJS.ErrnoException
    throw problem(`redis.tls.${key} is no PEM, and as the name of a file cannot be read (${code})`)
  }
  if (isPem(found)) return found
  throw problem(`the file of redis.tls.${key} holds no PEM: convert it with openssl x509, or openssl pkey`)
}

/** As an error of the network: nobody refuses us. */
const problem = (text: string) => Object.assign(new Error(text), { code: 'ERR_REDIS_TLS' })

const CA = 'give who signed it as redis.tls.ca, and with it the certificates between them'

/** The first that fits the code or the text of an error. */
const FIXES: ReadonlyArray<readonly [RegExp, string]> = [
  [/\bCERT_HAS_EXPIRED\b/, 'the certificate of Redis, or of who signed it, has expired: renew it'],
  [/\bCERT_NOT_YET_VALID\b/, 'the certificate of Redis is not valid yet: set the clocks'],
  [/\bERR_TLS_CERT_ALTNAME_INVALID\b/, 'the certificate of Redis has another name: redis.tls.servername says which'],
  [/SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|CERT_SIGNATURE_FAILURE/, `nobody vouches for Redis here: ${CA}`],
  [/KEY_VALUES_MISMATCH|key values mismatch/i, 'redis.tls.cert and redis.tls.key do not belong together'],
  [
    /alert certificate required|alert handshake failure/i,
    'Redis asks for our certificate: redis.tls.cert and redis.tls.key',
  ],
  [/alert certificate expired/i, 'our certificate has expired: renew the file of redis.tls.cert'],
  [
    /alert (?:unknown ca|(?:bad|unsupported|revoked|unknown) certificate|certificate)/i,
    'Redis does not accept redis.tls.cert',
  ],
  [/WRONG_VERSION_NUMBER|wrong version number/i, 'what answers speaks no TLS: redis:// is for this port'],
  [/\bERR_OSSL|\bERR_SSL/, 'it is about redis.tls, or the certificates of Redis'],
]

/** What to do about an error of TLS; undefined for any other. */
export function explainTls(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return undefined
  const { code = '' } = thrown as NodeJS.ErrnoException
  return FIXES.find(([pattern]) => pattern.test(`${code} ${thrown.message}`))?.[1]
}
