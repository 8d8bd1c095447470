// Reads the operator's logo.
import { readFileSync, statSync } from 'node:fs'
import { extname, resolve } from 'node:path'
import { StartError } from '../../../core/index.ts'
import type { Logo } from './views.ts'

const MAX_BYTES = 256 * 1024

const TYPES: Readonly<Record<string, string>> = {
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.webp': 'image/webp',
}

/**
 * Reads `file`, relative to `directory`. Throws a StartError if the file is missing, larger than 256 kB or of another type.
 * Pages embed an SVG only as an image, so it cannot run scripts or load anything.
 */
export function readLogo(file: string, directory: string): Logo {
  const refuse = (why: string, cause?: unknown) =>
    new StartError(`the logo ${JSON.stringify(file)} ${why}`, { exitCode: 2, cause })
  const type = TYPES[extname(file).toLowerCase()]
  if (type === undefined) throw refuse('is not a .svg, .png, .jpg, .jpeg or .webp file')
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
  return { type, data }
}
