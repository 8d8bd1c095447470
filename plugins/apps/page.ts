// Reads or bundles the page of an app. A page is made once, also for reloads, until one of its files changes.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BuildFailure } from 'esbuild'
import { LRUCache } from 'lru-cache'
import { errorText } from '../../core/plugin.ts'
import { canonicalJson } from '../families/canonical-json/index.ts'
import type { BundleSettings } from './bundle-page.ts'
import type { AppDefinition } from './define-app.ts'

const BRAND = Symbol.for('mcp-host.app-page-fault')

interface ErrorDetails extends Partial<Pick<PageError, 'at' | 'files'>> {
  readonly cause?: unknown
}

export class PageError extends Error {
  readonly [BRAND] = true
  readonly at: readonly string[]
  /** Absolute paths of the files to watch for a fix. */
  readonly files: readonly string[]

  constructor(text: string, { at = [], files = [], cause }: ErrorDetails = {}) {
    super(text, { cause })
    this.name = 'PageFault'
    this.at = at
    this.files = files
  }

  /** Works like `instanceof`, also if this module is loaded twice. */
  static is(value: unknown): value is PageError {
    return value instanceof Error && BRAND in value
  }
}

export const canonical = (app: AppDefinition): string => JSON.stringify(canonicalJson(app))

const MAX_SHOWN = 5

const isFailure = (error: unknown): error is BuildFailure =>
  error instanceof Error && 'errors' in error && Array.isArray(error.errors)

function bundleError(error: unknown, { file, directory }: BundleSettings): PageError {
  const at = ['module']
  if (!isFailure(error)) return new PageError(`esbuild cannot bundle it: ${errorText(error)}`, { at, cause: error })
  const locations = error.errors.map(({ text, location }) => {
    if (!location) return { text }
    const file = resolve(directory, location.file)
    return { text: `${relative(directory, file)}:${location.line}:${location.column + 1}: ${text}`, file }
  })
  const lines = locations.slice(0, MAX_SHOWN).map(({ text }) => text)
  if (locations.length > MAX_SHOWN) lines.push(`and ${locations.length - MAX_SHOWN} more`)
  const files = [file, ...locations.flatMap(place => place.file ?? [])]
  return new PageError(`its module cannot be bundled:\n${lines.join('\n')}`, { at, files, cause: error })
}

export interface Page {
  readonly html: string
  readonly bytes: number
  readonly files: readonly string[]
  /** Size in bytes by file, the largest first. */
  readonly parts: ReadonlyArray<readonly [file: string, bytes: number]>
}

export interface PageSettings {
  readonly directory: string
  readonly minify: boolean
  readonly maxBytes: number
}

const kept = new LRUCache<string, { readonly page: Page; readonly digest: string }>({ max: 256 })

async function digestOf(files: readonly string[]): Promise<string> {
  const hash = createHash('sha256')
  for (const file of files) {
    const text = await readFile(file).catch(() => undefined)
    hash.update(text === undefined ? `${file} is gone\n` : `${file} ${text.length}\n`).update(text ?? '')
  }
  return hash.digest('base64')
}

const size = (bytes: number): string =>
  bytes < 1_024 ** 2 ? `${Math.ceil(bytes / 1_024)} kB` : `${(bytes / 1_024 ** 2).toFixed(1)} MB`

const keyOf = (app: AppDefinition, { directory, minify }: PageSettings) => `${directory}\n${minify}\n${canonical(app)}`

/** Returns the last page, even if its files changed. */
export const lastPage = (app: AppDefinition, settings: PageSettings): Page | undefined =>
  kept.get(keyOf(app, settings))?.page

export async function pageOf(app: AppDefinition, settings: PageSettings): Promise<Page> {
  const key = keyOf(app, settings)
  const known = kept.get(key)
  if (known && known.digest === (await digestOf(known.page.files))) return checkSize(app, known.page, settings)
  const page = await makePage(app, settings)
  kept.set(key, { page, digest: await digestOf(page.files) })
  return checkSize(app, page, settings)
}

function checkSize({ html }: AppDefinition, page: Page, { maxBytes }: PageSettings): Page {
  if (page.bytes <= maxBytes) return page
  const largest = page.parts.slice(0, 3).map(([file, bytes]) => `${file} (${size(bytes)})`)
  const what = largest.length > 0 ? `; the largest parts are ${largest.join(', ')}` : ''
  const why = `its page has ${size(page.bytes)}, more than the ${size(maxBytes)} of \`maxPageSize\`${what}`
  throw new PageError(why, { at: [html === undefined ? 'module' : 'html'], files: page.files })
}

async function makePage(app: AppDefinition, { directory, minify }: PageSettings): Promise<Page> {
  const { html, module } = app
  if (html !== undefined && module !== undefined) throw new PageError('set `html` or `module`, not both')
  if (html !== undefined) return writtenPage(html, directory)
  if (module === undefined) throw new PageError('set a page: `html`, or a `module` to bundle')
  const file = fileOf(module, directory, 'module')
  await readText(file, 'module')
  const { bundlePage } = await import('./bundle-page.ts')
  const settings = { file, directory, minify }
  const { text, files, parts } = await bundlePage(app, settings).catch(error => {
    throw bundleError(error, settings)
  })
  return { html: text, bytes: Buffer.byteLength(text), files, parts }
}

const DOCTYPE = /^\s*(?:<!--[\s\S]*?-->\s*)*<!doctype html\b/i

async function writtenPage(html: string, directory: string): Promise<Page> {
  const isText = html.trimStart().startsWith('<')
  const file = isText ? undefined : fileOf(html, directory, 'html')
  const text = (file === undefined ? html : await readText(file, 'html')).replace(/^\uFEFF/, '')
  const files = file === undefined ? [] : [file]
  if (!DOCTYPE.test(text)) throw new PageError('its page must begin with <!doctype html>', { at: ['html'], files })
  return { html: text, bytes: Buffer.byteLength(text), files, parts: [] }
}

function fileOf(place: string, directory: string, key: 'html' | 'module'): string {
  if (!/^[a-z][a-z\d+.-]+:/i.test(place)) return resolve(directory, place)
  try {
    return fileURLToPath(place)
  } catch (cause) {
    throw new PageError(`\`${key}\` takes a path or the URL of a file, not ${place}`, { at: [key], cause })
  }
}

async function readText(file: string, key: 'html' | 'module'): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    const isMissing = (cause as NodeJS.ErrnoException).code === 'ENOENT'
    const why = isMissing ? `the file does not exist: ${file}` : `${file} cannot be read: ${errorText(cause)}`
    const hint = `paths are relative to the config's folder; \`new URL('./...', import.meta.url)\` is beside your module`
    throw new PageError(`${why}; ${hint}`, { at: [key], files: [file], cause })
  }
}
