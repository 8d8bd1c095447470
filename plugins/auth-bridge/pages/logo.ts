// Reads the operator's logo: what kind of picture it is its bytes say, not its name.
import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { StartError } from '../../../core/index.ts'
import type { Logo } from './views.ts'

const MAX_BYTES = 256 * 1024

const startsWith = (data: Buffer, bytes: readonly number[]) => data.subarray(0, bytes.length).equals(Buffer.from(bytes))

/** What may stand before the root element of an XML document, the longest first. */
const PROLOG = [
  ['<?', '?>'],
  ['<!--', '-->'],
  ['<!DOCTYPE', '>'],
] as const

/** UTF-8 text whose root element is `svg`. */
function isSvg(data: Buffer): boolean {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(data).trim()
  } catch {
    return false
  }
  for (;;) {
    const part = PROLOG.find(([start]) => text.startsWith(start))
    if (part === undefined) break
    const end = text.indexOf(part[1])
    if (end === -1) return false
    text = text.slice(end + part[1].length).trimStart()
  }
  return /^<svg[\s>]/.test(text) && text.endsWith('</svg>')
}

function typeOf(data: Buffer): string | undefined {
  if (startsWith(data, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])) return 'image/png'
  if (startsWith(data, [0xff, 0xd8, 0xff])) return 'image/jpeg'
  if (data.subarray(0, 4).toString('latin1') === 'RIFF' && data.subarray(8, 12).toString('latin1') === 'WEBP')
    return 'image/webp'
  return isSvg(data) ? 'image/svg+xml' : undefined
}

/**
 * `file`: from `directory`. Throws a StartError where it is missing, no file, more than 256 kB, or no SVG, PNG, JPEG or WebP.
 * An SVG is only ever shown as an image, in which nothing of it runs or loads.
 */
export function readLogo(file: string, directory: string): Logo {
  const refuse = (why: string, cause?: unknown) =>
    new StartError(`the logo ${JSON.stringify(file)} ${why}`, { exitCode: 2, cause })
  const path = resolve(directory, file)
  let data: Buffer
  try {
    const about = statSync(path)
    if (!about.isFile()) throw refuse('is no file; name the picture itself')
    const { size } = about
    if (size > MAX_BYTES) throw refuse(`has ${size} bytes; at most ${MAX_BYTES} (256 kB) are allowed: make it smaller`)
    data = readFileSync(path)
  } catch (cause) {
    if (cause instanceof StartError) throw cause
    const { code } = cause as NodeJS.ErrnoException
    throw refuse(`cannot be read (${code}); it is looked for in the folder of the config`, cause)
  }
  const type = typeOf(data)
  if (type === undefined)
    throw refuse('is no SVG, PNG, JPEG or WebP by its content; an SVG is UTF-8 and has an svg root')
  return { type, data }
}
