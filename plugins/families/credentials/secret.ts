// Reads secrets of the config.
import type { SecretSource } from './schema.ts'

const UNSAFE = /\p{Cc}|[^\u0020-\u00ff]/u

function checkSecret(value: unknown, what: string): string {
  // Secret files end with a line break.
  const secret = typeof value === 'string' ? value.replace(/[\r\n]+$/, '') : ''
  if (secret === '') throw new Error(`${what} is empty or not a text`)
  if (UNSAFE.test(secret)) throw new Error(`${what} has characters that are invalid in headers`)
  return secret
}

/** Throws, or rejects, for a secret that cannot be sent. The message names the option only. */
export function readSecret(source: SecretSource, what: string): string | Promise<string> {
  if (typeof source === 'string') return checkSecret(source, what)
  return Promise.resolve()
    .then(source)
    .then(
      value => checkSecret(value, what),
      () => {
        throw new Error(`the function ${what} failed`)
      },
    )
}

/** A multi-line secret such as a PEM key. */
export async function readKey(source: SecretSource | undefined, what: string): Promise<string | undefined> {
  if (source === undefined) return undefined
  try {
    const value: unknown = typeof source === 'string' ? source : await source()
    if (typeof value === 'string' && value.trim() !== '') return value.trim()
  } catch {
    throw new Error(`the function ${what} failed`)
  }
  throw new Error(`${what} is empty or not a text`)
}
