// An authorization server that the test controls completely: its documents, its availability, and the content of its tokens.
import { constants, createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface TestKey {
  readonly kid: string
  readonly alg: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

const EC_CURVES: Readonly<Record<string, string>> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' }

/** RSA pairs by their bits: two of each size, because generating one takes 100 ms and more. */
const rsaPairs = new Map<number, Pick<TestKey, 'publicKey' | 'privateKey'>[]>()

function rsaPair(modulusLength: number) {
  const pairs = rsaPairs.get(modulusLength) ?? []
  const pair = (pairs.length === 2 && pairs.shift()) || generateKeyPairSync('rsa', { modulusLength })
  pairs.push(pair)
  rsaPairs.set(modulusLength, pairs)
  return pair
}

/** A new key pair. RSA pairs are used again, but never twice in a row. */
export function makeKey(kid: string, alg = 'ES256', { bits = 2048 } = {}): TestKey {
  const namedCurve = EC_CURVES[alg]
  const pair = namedCurve
    ? generateKeyPairSync('ec', { namedCurve })
    : alg === 'EdDSA'
      ? generateKeyPairSync('ed25519')
      : rsaPair(bits)
  return { kid, alg, ...pair }
}

export const toJwk = ({ kid, alg, publicKey }: TestKey): Record<string, unknown> => ({
  ...publicKey.export({ format: 'jwk' }),
  kid,
  alg,
  use: 'sig',
})

export const encode = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

const PSS = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }

/** Signs a text with the key, or with a secret for HS algorithms. */
export function signText(text: string, alg: string, key: KeyObject | string): string {
  const digest = `sha${alg.slice(2)}`
  if (typeof key === 'string') return createHmac(digest, key).update(text).digest('base64url')
  if (alg === 'EdDSA') return sign(null, Buffer.from(text), key).toString('base64url')
  const padded = alg.startsWith('PS') ? PSS : {}
  return sign(digest, Buffer.from(text), { key, dsaEncoding: 'ieee-p1363', ...padded }).toString('base64url')
}

type Fields = Readonly<Record<string, unknown>>

/** A JWT with these claims. `header` overrides the defaults for the key; undefined removes a field. */
export function signToken(claims: Fields | string, key: TestKey, header: Fields = {}): string {
  const head = { alg: key.alg, typ: 'at+jwt', kid: key.kid, ...header }
  const text = `${encode(head)}.${encode(claims)}`
  return `${text}.${signText(text, key.alg, key.privateKey)}`
}

/** Seconds since the epoch, relative to now. */
export const inSeconds = (seconds: number): number => Math.floor(Date.now() / 1_000) + seconds

/** `broken` closes every connection, `missing` answers 404. */
export type Mood = 'well' | 'broken' | 'missing'

export interface TestIssuer {
  readonly url: string
  /** The published keys; change them to rotate. */
  keys: TestKey[]
  /** Additional key set entries, published unchanged. */
  others?: readonly object[]
  mood: Mood
  /** Overrides of the metadata document. */
  metadata: Fields
  /** The requested paths, in order. */
  readonly asked: string[]
  /** Valid claims for an audience, with changes; undefined removes a claim. */
  claims(audience: string, changes?: Fields): Record<string, unknown>
  /** A valid token for an audience, with changed claims. */
  token(audience: string, changes?: Fields): string
  stop(): Promise<void>
}

interface Options {
  /** The path of the metadata document. */
  readonly metadataPath?: string
  /** Requests of this path get no response. */
  readonly brokenPath?: string
  readonly keys?: TestKey[]
}

const running = new Set<TestIssuer>()

export async function startIssuer({
  metadataPath = '/.well-known/oauth-authorization-server',
  brokenPath,
  keys = [makeKey('first')],
}: Options = {}): Promise<TestIssuer> {
  const server = createServer((request, response) => answer(request.url ?? '', response))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const issuer: TestIssuer = {
    url,
    keys,
    mood: 'well',
    metadata: {},
    asked: [],
    claims: (audience, changes = {}) => ({
      iss: url,
      sub: 'ann',
      aud: audience,
      client_id: 'a-client',
      exp: inSeconds(300),
      iat: inSeconds(0),
      ...changes,
    }),
    token(audience, changes) {
      const [key] = issuer.keys
      if (!key) throw new Error('this issuer has no key to sign with')
      return signToken(issuer.claims(audience, changes), key)
    },
    async stop() {
      running.delete(issuer)
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
  running.add(issuer)
  function answer(path: string, response: ServerResponse) {
    issuer.asked.push(path)
    if (issuer.mood === 'broken' || path === brokenPath) return void response.destroy()
    const documents: Record<string, unknown> = {
      [metadataPath]: { issuer: url, jwks_uri: `${url}/jwks`, ...issuer.metadata },
      '/jwks': { keys: [...(issuer.others ?? []), ...issuer.keys.map(toJwk)] },
    }
    const document = issuer.mood === 'missing' ? undefined : documents[path]
    response.writeHead(document === undefined ? 404 : 200, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify(document ?? {}))
  }
  return issuer
}

/** Stops every issuer that this file started: call it in `after`. */
export async function stopIssuers(): Promise<void> {
  await Promise.all([...running].map(issuer => issuer.stop()))
}
