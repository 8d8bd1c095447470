// Derives one signing or encryption key per use from the configured `secrets`.

import { createCipheriv, createDecipheriv, createPublicKey, hkdfSync, randomBytes } from 'node:crypto'
import { attempt } from '../http/describe-thrown.ts'
import { StartError, stopAtFirst } from '../http/errors.ts'

export const MIN_SECRET_LENGTH = 32

export interface Secrets {
  /** True: the keys are temporary, because no secret is configured. */
  readonly generated: boolean
  /** Returns keys of 32 bytes for one use, one per secret. The first key signs, all verify. */
  keys(use: string): readonly Buffer[]
}

const isSet = (secret: string | undefined | null): secret is string => Boolean(secret)

/**
 * `fromEnvironment`: MCP_HOST_SECRETS (comma-separated), if the config has none. Reports short secrets and public keys.
 */
export function createSecrets(
  configured: ReadonlyArray<string | undefined | null> = [],
  fromEnvironment?: string,
  report = stopAtFirst,
): Secrets {
  const inConfig = configured.filter(isSet)
  const inEnvironment = (fromEnvironment ?? '').split(',').map(text => text.trim())
  const [where, secrets] =
    inConfig.length > 0 ? ['secrets', inConfig] : ['MCP_HOST_SECRETS', inEnvironment.filter(isSet)]
  for (const [index, secret] of secrets.entries()) {
    const key = publicKeyTypeOf(secret)
    const isShort = secret.length < MIN_SECRET_LENGTH
    if (!isShort && key === undefined) continue
    const what = isShort
      ? `is shorter than ${MIN_SECRET_LENGTH} characters; make one with: openssl rand -base64 32`
      : `is ${key}, not a random secret; make one with: openssl rand -base64 32`
    const at = where === 'secrets' ? ['secrets', configured.indexOf(secret)] : []
    report(new StartError('MH1032', `${where}[${index}] ${what}`, { exitCode: 2 }).locatedAt(at))
  }
  const generated = secrets.length === 0
  const sources = generated ? [randomBytes(32)] : secrets
  const derived = new Map<string, readonly Buffer[]>()
  return {
    generated,
    keys(use) {
      const keys =
        derived.get(use) ?? sources.map(secret => Buffer.from(hkdfSync('sha256', secret, '', `mcp-host ${use}`, 32)))
      derived.set(use, keys)
      return keys
    },
  }
}

const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Encrypts a text, bound to `context`. */
export function encryptText(key: Buffer, context: string, text: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(context))
  return Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()])
}

/** Undefined if the key or context is another one, or the bytes were altered. */
export const decryptText = (key: Buffer, context: string, bytes: Buffer): string | undefined =>
  attempt(() => {
    const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
      .setAAD(Buffer.from(context))
      .setAuthTag(bytes.subarray(-TAG_BYTES))
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]).toString()
  })

const isBase64 = (text: string) => /^[A-Za-z0-9+/_\s-]+={0,2}\s*$/.test(text)

const succeeds = (part: () => unknown) => Boolean(attempt(part))

const isKeyInDer = (der: Buffer): boolean =>
  der.length >= 40 &&
  (['spki', 'pkcs1'] as const).some(type => succeeds(() => createPublicKey({ key: der, format: 'der', type })))

/** Node.js reads certificates only as PEM. */
const isCertificate = (der: Buffer): boolean =>
  succeeds(() => createPublicKey(`-----BEGIN CERTIFICATE-----\n${der.toString('base64')}\n-----END CERTIFICATE-----\n`))

function keyTypeOf(text: string): string | undefined {
  if (/-----\s*BEGIN/.test(text)) return /BEGIN [A-Z ]*CERTIFICATE/.test(text) ? 'a certificate' : 'a key in PEM'
  if (/^(?:ssh-|ecdsa-sha2-)\S+ AAAA/.test(text)) return 'an SSH public key'
  return succeeds(() => JSON.parse(text) instanceof Object) ? 'a JWK, or other JSON' : undefined
}

/** Returns the type of public key in a text, also in base64. A public key as a secret would let anyone sign. */
export function publicKeyTypeOf(text: string): string | undefined {
  const trimmed = text.trim()
  const plain = keyTypeOf(trimmed)
  if (plain !== undefined || !isBase64(trimmed)) return plain
  const der = Buffer.from(trimmed, 'base64')
  return keyTypeOf(der.toString().trim()) ?? (isKeyInDer(der) || isCertificate(der) ? 'a key in base64' : undefined)
}
