// The option --token: a token, or where it is.
import { readFileSync } from 'node:fs'
import { errorText, StartError } from '../core/http/errors.ts'
import { knownSecrets } from './known-secrets.ts'

/** The token itself, or from where it is: `-` is stdin, `@file` a file, so that it need not be in a list of processes. */
export function readToken(given: string | undefined): string | undefined {
  if (given === undefined) return undefined
  try {
    const text =
      given === '-' ? readFileSync(0, 'utf8') : given.startsWith('@') ? readFileSync(given.slice(1), 'utf8') : given
    const token = text.trim().replace(/^Bearer +/i, '')
    knownSecrets.add(token)
    return token
  } catch (cause) {
    throw new StartError(`--token: it cannot be read: ${errorText(cause)}`, { cause, exitCode: 2 })
  }
}
