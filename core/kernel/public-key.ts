// Whether a text that is to be a secret is a key that everybody may know: whoever signs with it signs as anybody.
// For the config's `secrets` and for plugins that verify by a shared secret.
import { createPublicKey } from 'node:crypto'

const isEncoded = (text: string) => /^[A-Za-z0-9+/_\s-]+={0,2}\s*$/.test(text)

function isKeyInDer(der: Buffer): boolean {
  if (der.length < 40) return false
  for (const type of ['spki', 'pkcs1'] as const) {
    try {
      createPublicKey({ key: der, format: 'der', type })
      return true
    } catch {}
  }
  return false
}

function isObjectInJson(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null
  } catch {
    return false
  }
}

function keyIn(text: string): string | undefined {
  if (/-----\s*BEGIN/.test(text)) return /BEGIN [A-Z ]*CERTIFICATE/.test(text) ? 'a certificate' : 'a key in PEM'
  if (/^(?:ssh-|ecdsa-sha2-)\S+ AAAA/.test(text)) return 'a public key of SSH'
  return isObjectInJson(text) ? 'a JWK, or other JSON' : undefined
}

/** What kind of key a text is, in base64 too; undefined: none, so it may be a secret. */
export function publicKeyIn(text: string): string | undefined {
  const trimmed = text.trim()
  const plain = keyIn(trimmed)
  if (plain !== undefined || !isEncoded(trimmed)) return plain
  const der = Buffer.from(trimmed, 'base64')
  return keyIn(der.toString().trim()) ?? (isKeyInDer(der) || isCertificate(der) ? 'a key in base64' : undefined)
}

function isCertificate(der: Buffer): boolean {
  try {
    // Reads a certificate's key, from PEM alone.
    createPublicKey(`-----BEGIN CERTIFICATE-----\n${der.toString('base64')}\n-----END CERTIFICATE-----\n`)
    return true
  } catch {
    return false
  }
}
