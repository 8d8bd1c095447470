// Reads `mcp.lock.json` next to the config, verifies all hashes, and writes it.
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { shortName } from '../../core/config/problems.ts'
import { LOCK_NAME } from '../../core/host.ts'
import { errorText, StartError } from '../../core/http/errors.ts'
import { utf8Text } from '../../core/http/utf8-text.ts'
import { isObject } from '../../core/mcp/wire/message.ts'
import { hasValidHash } from '../../plugins/families/canonical-json/index.ts'
import { replaceFile } from '../connect/write-config.ts'
import { type CommandContext, usage } from '../context.ts'
import { jsonText } from '../text.ts'
import { type Lock, SURFACE_FORMAT, SURFACE_LISTS, type Surface } from './surface.ts'

export type LockContext = Pick<CommandContext, 'stdin' | 'cwd'>

/** Maximum size, bytes. */
const MAX_BYTES = 64 * 2 ** 20
/** Maximum nesting of the JSON. A definition's schema has at most 64 levels. */
const MAX_LEVELS = 200

export const lockFileOf = (config: string, given: string | undefined, cwd: string): string =>
  given === undefined ? join(dirname(config), LOCK_NAME) : resolve(cwd, given)

export const displayName = (file: string, cwd: string): string => (file === '-' ? 'stdin' : shortName(file, cwd))

export const isTooDeep = (value: unknown, max: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (max === 0 || Object.values(value).some(entry => isTooDeep(entry, max - 1)))

const isTextList = (value: unknown) => Array.isArray(value) && value.every(entry => typeof entry === 'string')
const areAll = (value: unknown, test: (entry: unknown) => boolean) =>
  isObject(value) && Object.values(value).every(test)

const isItem = (item: unknown) => isObject(item) && isTextList(item['needs']) && isObject(item['shown'])

const isRoute = (route: unknown) =>
  isObject(route) &&
  ['needs', 'revisions', 'transports'].every(name => isTextList(route[name])) &&
  typeof route['route'] === 'string' &&
  isObject(route['capabilities']) &&
  SURFACE_LISTS.every(list => areAll(route[list], isItem))

const isRunTime = (value: unknown) => Array.isArray(value) && value.every(name => name === 'configureSession')

const isLock = (value: unknown): value is Lock =>
  isObject(value) &&
  (value['upstreams'] === undefined || isObject(value['upstreams'])) &&
  isObject(value['server']) &&
  isRunTime(value['atRunTime']) &&
  areAll(value['routes'], isRoute)

function findChanged(surface: Surface): string | undefined {
  for (const [at, route] of Object.entries(surface.routes)) {
    for (const list of SURFACE_LISTS) {
      const changed = Object.entries(route[list]).find(([, item]) => !hasValidHash(item))
      if (changed) return `${list} "${changed[0]}" of ${at}`
    }
    if (!hasValidHash(route)) return at
  }
  return hasValidHash(surface) ? undefined : 'the whole'
}

function parse(text: string, name: string): unknown {
  try {
    return JSON.parse(utf8Text(text))
  } catch (cause) {
    const why = /^<{7} /m.test(text) ? 'it contains merge conflicts' : errorText(cause)
    throw usage(`${name} is not JSON: ${why}; write it again with \`mcp-host lock\``, cause)
  }
}

/** Parses a lock. Throws a StartError for an invalid or manually edited lock. */
export function readLock(text: string, name: string): Lock {
  const value = parse(text, name)
  if (!isObject(value) || typeof value['format'] !== 'number') {
    throw usage(`${name} is not a lock file: it has no "format"; \`mcp-host lock\` writes one`)
  }
  if (value['format'] !== SURFACE_FORMAT) {
    const what = `${name} has the format ${value['format']}, and this version reads ${SURFACE_FORMAT}`
    throw usage(`${what}; write it again with \`mcp-host lock\`, or use the version that wrote it`)
  }
  if (isTooDeep(value, MAX_LEVELS) || !isLock(value)) {
    throw usage(`${name} is not a lock file, or is incomplete; write it again with \`mcp-host lock\``)
  }
  const { upstreams: _, ...surface } = value
  const changed = findChanged(surface)
  if (changed !== undefined) {
    const what = `${name} was changed manually: the hash of ${changed} does not match its content`
    throw usage(`${what}; write it again with \`mcp-host lock\`, and review the difference`)
  }
  return value
}

/** Reads a file or stdin up to the size limit, because a device or a pipe might never end. */
async function readLimited(file: string, name: string, { stdin, cwd }: LockContext): Promise<string> {
  const path = resolve(cwd, file)
  if (file !== '-' && !(await stat(path)).isFile()) throw usage(`${name} is not a file; - reads the lock from stdin`)
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of file === '-' ? stdin : createReadStream(path)) {
    pieces.push(Buffer.from(piece))
    size += piece.length
    if (size > MAX_BYTES) throw usage(`${name} is too large for a lock file`)
  }
  return Buffer.concat(pieces).toString()
}

export async function readLockFile(file: string, context: LockContext): Promise<Lock> {
  const name = displayName(file, context.cwd)
  try {
    return readLock(await readLimited(file, name, context), name)
  } catch (cause) {
    if (cause instanceof StartError) throw cause
    const isMissing = (cause as NodeJS.ErrnoException).code === 'ENOENT'
    const why = isMissing ? 'there is none' : errorText(cause)
    throw usage(`${name}: ${why}; run \`mcp-host lock\` to create the lock file, and commit it with the config`, cause)
  }
}

export const lockText = ({ format, hash, server, atRunTime, routes, upstreams }: Lock): string =>
  `${jsonText({ format, hash, server, atRunTime, routes, upstreams })}\n`

export async function writeLockFile(file: string, lock: Lock, cwd: string): Promise<void> {
  try {
    await replaceFile(file, lockText(lock), 0o666)
  } catch (cause) {
    throw new StartError('MH3003', `${displayName(file, cwd)} cannot be written: ${errorText(cause)}`, { cause })
  }
}
