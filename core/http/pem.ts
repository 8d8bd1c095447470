// What `http.tls` names, as text: PEM that stands in the config, or the file that a key of it names. For certificate.ts.
import { readFile, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Report, StartError } from './start-error.ts'

/** The keys of `http.tls` that are PEM. */
export const PEM_KEYS = ['cert', 'key', 'clientCa'] as const
export type PemKey = (typeof PEM_KEYS)[number]

/** Each as it stands in the config. */
export type GivenPem = { readonly [Key in PemKey]?: string }
/** Each as text; one that cannot be read is not there. */
export type PemTexts = { readonly [Key in PemKey]?: string }

/** Bytes: a certificate with all that signed it has a few thousand, every authority that is known some hundred thousand. */
const MAX_FILE = 4 * 1024 * 1024

export const isPem = (text: string): boolean => text.includes('-----BEGIN')

/** What ends like a file is one. Anything else may be a key in another encoding, and is not shown. */
const LOOKS_LIKE_FILE = /^[^\n]{0,1000}\.[a-z0-9]{1,6}$/i

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'this user may not read it',
  EISDIR: 'it is a folder',
  ENAMETOOLONG: 'no file has such a name',
}

function reasonOf({ code = '', message }: NodeJS.ErrnoException): string {
  return REASONS[code] ?? (code || message)
}

async function readPemFile(file: string): Promise<string> {
  const found = await stat(file)
  if (found.isDirectory()) throw Object.assign(new Error('it is a folder'), { code: 'EISDIR' })
  // A pipe would be waited for, and for ever.
  if (!found.isFile()) throw new Error('it is no file but a device, a pipe or a socket')
  if (found.size > MAX_FILE) throw new Error('no certificate is that large')
  return readFile(file, 'utf8')
}

async function readOne(key: PemKey, given: string, directory: string): Promise<string> {
  if (isPem(given)) return given
  const at = ['http', 'tls', key]
  const shown = LOOKS_LIKE_FILE.test(given) ? given : 'what is given'
  let text: string
  try {
    text = await readPemFile(resolve(directory, given))
  } catch (cause) {
    const why = reasonOf(cause as NodeJS.ErrnoException)
    throw new StartError(`${shown} is neither PEM nor a file that can be read: ${why}`, { at, cause })
  }
  if (isPem(text)) return text
  const hint = text.trim() === '' ? 'it is empty' : 'openssl makes PEM of DER and PKCS #12'
  throw new StartError(`${shown} holds no PEM, which begins with -----BEGIN; ${hint}`, { at })
}

/** Reads all of them; what cannot be read is reported, with its key. */
export async function readPems(given: GivenPem, directory: string, report: Report): Promise<PemTexts> {
  const read = PEM_KEYS.map(async key => {
    const value = given[key]
    if (value === undefined) return []
    try {
      return [[key, await readOne(key, value, directory)]]
    } catch (error) {
      if (!(error instanceof StartError)) throw error
      report(error)
      return []
    }
  })
  return Object.fromEntries((await Promise.all(read)).flat())
}
