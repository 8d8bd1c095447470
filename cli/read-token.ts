// The option --token: a token, or where it is.
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { errorText, StartError } from '../core/http/errors.ts'
import { utf8Text } from '../core/http/utf8-text.ts'
import { type CommandContext, readStdin } from './context.ts'

/** The token itself, or from where it is: `-` is stdin, `@file` a file, so that it need not be in a list of processes. */
export async function readToken(context: CommandContext, given: string | undefined): Promise<string | undefined> {
  if (given === undefined) return undefined
  try {
    const text =
      given === '-'
        ? await readStdin(context)
        : given.startsWith('@')
          ? utf8Text(await readFile(resolve(context.cwd, given.slice(1)), 'utf8'))
          : given
    const token = text.trim().replace(/^Bearer +/i, '')
    context.secrets.add(token)
    return token
  } catch (cause) {
    throw new StartError(`--token: it cannot be read: ${errorText(cause)}`, { cause, exitCode: 2 })
  }
}
