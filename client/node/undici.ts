// undici, which is not part of this package: whoever goes through an HTTP proxy has it installed.
import { AuthError } from '../errors.ts'

type Undici = typeof import('undici')

/** The generation that this is tested with. */
const INSTALL = 'npm i undici@7'

/** Throws an AuthError with the line that installs it. */
export async function loadUndici(): Promise<Undici> {
  try {
    return await import('undici')
  } catch (cause) {
    const isMissing = cause instanceof Error && 'code' in cause && cause.code === 'ERR_MODULE_NOT_FOUND'
    if (!isMissing) throw cause
    throw new AuthError('going through an HTTP proxy needs undici, an optional package that is not installed', {
      code: 'invalid_options',
      fix: `run: ${INSTALL}`,
      cause,
    })
  }
}
