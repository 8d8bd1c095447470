// Edits one entry of a client's configuration file atomically, with a backup.

import { constants } from 'node:fs'
import { copyFile, mkdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative, sep } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { applyEdits, getNodeValue, modify, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'
import { printable } from '../../client/text.ts'
import { errorText, StartError } from '../../core/http/errors.ts'
import { isObject } from '../../core/mcp/wire/message.ts'
import { usage } from '../context.ts'

const MAX_BACKUPS = 100

function parseCommented(text: string): unknown {
  const errors: ParseError[] = []
  const root = parseTree(text, errors, { allowTrailingComma: true })
  if (errors[0]) throw new SyntaxError(`it is not JSON: ${printParseErrorCode(errors[0].error)}`)
  // JSON.parse turns a `__proto__` key into an own property.
  return root && JSON.parse(JSON.stringify(getNodeValue(root)))
}

/** Sets a value in JSON text, with the indentation of the text. */
export function editJson(text: string, path: readonly string[], value: unknown): string {
  const unit = /\n([ \t]+)\S/.exec(text)?.[1] ?? '  '
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const formattingOptions = { insertSpaces: !unit.startsWith('\t'), tabSize: unit.length, eol }
  return applyEdits(text, modify(text, [...path], value, { formattingOptions }))
}

/** Sets `[section][name]` and keeps the rest. Undefined if unchanged. Throws an Error if the text cannot be edited. */
export function setEntry(
  given: string,
  [section, name]: readonly [string, string],
  value: object,
): { readonly text: string; readonly replaces: boolean } | undefined {
  const mark = given.startsWith('\ufeff') ? '\ufeff' : ''
  const text = given.slice(mark.length)
  const isEmpty = text.trim() === ''
  const before = isEmpty ? {} : parseCommented(text)
  if (!isObject(before)) throw new Error('it is not a JSON object')
  const servers = Object.hasOwn(before, section) ? before[section] : undefined
  if (servers !== undefined && !isObject(servers)) throw new Error(`"${section}" in it is not an object`)
  const replaces = servers !== undefined && Object.hasOwn(servers, name)
  if (replaces && isDeepStrictEqual(servers[name], value)) return undefined
  const after = editJson(isEmpty ? '{}' : text, [section, name], value)
  const updated = { ...before, [section]: { ...servers, [name]: value } }
  // Detects duplicate keys, of which readers use the last one.
  if (!isDeepStrictEqual(parseCommented(after), updated)) throw new Error('it has duplicate keys')
  return { text: `${mark}${after}${isEmpty ? '\n' : ''}`, replaces }
}

const isAbsent = (error: unknown) => (error as NodeJS.ErrnoException).code === 'ENOENT'

export async function readConfig(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    if (isAbsent(cause)) return undefined
    throw new StartError('MH3002', `${file} cannot be read: ${errorText(cause)}`, { cause })
  }
}

export async function resolveFile(file: string): Promise<string> {
  try {
    return await realpath(file)
  } catch (cause) {
    if (isAbsent(cause) && dirname(file) !== file) return join(await resolveFile(dirname(file)), basename(file))
    throw new StartError('MH3002', `${file} cannot be read: ${errorText(cause)}`, { cause })
  }
}

/** Throws a StartError (exit code 2) if a symbolic link of the project leads out of its folder. */
export async function assertInside(folder: string, file: string): Promise<void> {
  const real = await resolveFile(file)
  const target = relative(await realpath(folder), real)
  if (target !== '..' && !target.startsWith(`..${sep}`)) return
  throw usage(`nothing was written: ${printable(file)} is a link to ${printable(real)}, outside of this project`)
}

async function backUp(file: string): Promise<string> {
  for (let count = 0; count < MAX_BACKUPS; count++) {
    const copy = `${file}.bak${count === 0 ? '' : count}`
    try {
      await copyFile(file, copy, constants.COPYFILE_EXCL)
      return copy
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
  throw new Error(`there are ${MAX_BACKUPS} backups next to it; delete some`)
}

/** Replaces the file atomically. */
export async function replaceFile(file: string, text: string, mode: number): Promise<void> {
  const temporary = `${file}.${process.pid}.tmp`
  try {
    await writeFile(temporary, text, { mode, flag: 'wx' })
    await rename(temporary, file)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

export async function writeConfig(file: string, before: string | undefined, text: string): Promise<string | undefined> {
  if ((await readConfig(file)) !== before)
    throw new StartError('MH3310', `${file} was changed in the meantime; run this again`)
  try {
    if (before === undefined) {
      await mkdir(dirname(file), { recursive: true })
      // Mode 0600, because other entries can contain secrets.
      await replaceFile(file, text, 0o600)
      return undefined
    }
    const real = await realpath(file)
    const { mode } = await stat(real)
    const old = await backUp(real)
    await replaceFile(real, text, mode & 0o777)
    return old
  } catch (cause) {
    throw new StartError('MH3003', `${file} cannot be written: ${errorText(cause)}`, { cause })
  }
}
