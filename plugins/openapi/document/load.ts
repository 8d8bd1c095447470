// Loads documents from files and URLs, and parses them as JSON or YAML.
import { open, readdir, realpath } from 'node:fs/promises'
import { basename, dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { nearest, ReadError, readJson, readYaml, type Services } from '../../../core/internal.ts'
import { errorText, isObject } from '../../../core/plugin.ts'
import { headerOf, sendOnce } from '../request-send.ts'
import { isTooDeep, MAX_DEPTH } from '../response-json.ts'
import { DocumentError, type DocumentFile, MissingDocument, type Place } from './place.ts'

/** Bytes of the main document and of an overlay. GitHub's has 13 MB. */
export const MAX_DOCUMENT = 64 * 1_024 ** 2
/** Limits for documents that `$ref`s name, per main document: number, and total bytes. */
const MAX_REFERENCED = 10
const MAX_REFERENCED_BYTES = 10 * 1_024 ** 2

/** A document that cannot be loaded or parsed. The message names the file, and the line if it is known. */
export class LoadError extends Error {}

/** Returns the contents of a file or URL. Throws a LoadError. `name`: for messages. */
export type Load = (url: URL, name: string, limit: number) => Promise<Uint8Array>

type Open = () => ReturnType<Services['openConnections']>

/** `open`: called for each URL. `reads`: called for each file. */
export function createLoad(open: Open, reads: (path: string) => void): Load {
  return async (url, name, limit) => {
    if (url.protocol !== 'file:') {
      return fetchBytes(open, url, limit).catch(cause => {
        throw new LoadError(`cannot fetch ${name}: ${errorReason(cause)}`, { cause })
      })
    }
    const path = fileURLToPath(url)
    reads(path)
    return readBytes(path, name, limit)
  }
}

const TIMEOUT = 30_000
const HEADERS = [
  ...['accept', 'application/vnd.oai.openapi+json, application/json, application/yaml, */*;q=0.5'],
  ...['accept-encoding', 'gzip, deflate, br', 'user-agent', 'mcp-host'],
]

/** Fetches a document from an allowed address, without redirects. */
async function fetchBytes(open: Open, url: URL, limit: number): Promise<Uint8Array> {
  const request = { method: 'GET', headers: [...HEADERS], timeout: TIMEOUT, maxResponse: limit }
  const { status, headers, body, isCut: isTruncated } = await sendOnce(open, url, request)
  if (status >= 300 && status < 400) {
    throw new Error(`HTTP ${status}, redirect to ${headerOf(headers, 'location')}: use that URL`)
  }
  if (status !== 200) throw new Error(`HTTP ${status}`)
  if (isTruncated) throw new Error(`more than ${Math.floor(limit / 1_024)} kB`)
  return body
}

/** Returns a reason without the URL, with advice on how to allow a refused address. */
function errorReason(error: unknown): string {
  const { fix, code } = error as { readonly fix?: unknown; readonly code?: unknown }
  const text = errorText(error) || `${code}`
  return typeof fix === 'string' && !text.includes(fix) ? `${text}; ${fix}` : text
}

async function readBytes(path: string, name: string, limit: number): Promise<Uint8Array> {
  const handle = await open(path).catch(async (cause: NodeJS.ErrnoException) => {
    if (cause.code !== 'ENOENT') throw new LoadError(`cannot read ${name}: ${errorText(cause)}`)
    const near = nearest(basename(path), await readdir(dirname(path)).catch(() => []))
    throw new LoadError(`${name} does not exist${near === undefined ? '' : `; did you mean "${near}"?`}`)
  })
  try {
    const about = await handle.stat()
    if (!about.isFile()) throw new LoadError(`${name} is not a file`)
    if (about.size > limit) throw new LoadError(`${name} has more than ${Math.floor(limit / 1_024)} kB`)
    return await handle.readFile()
  } finally {
    await handle.close()
  }
}

/** Throws a LoadError. */
export function parseDocument(url: URL, name: string, bytes: Uint8Array): DocumentFile {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
  const isJson = /^\uFEFF?\s*[{[]/.test(text) && !/\.ya?ml$/i.test(url.pathname)
  if (isJson && isTooDeep(text)) throw new LoadError(`${name} is nested more than ${MAX_DEPTH} levels`)
  try {
    const { config: root, locate } = isJson ? parseJson(text) : readYaml(text)
    return { name, url, root, lineAt: path => locate(numbered(path, root)) }
  } catch (cause) {
    if (!(cause instanceof ReadError)) throw cause
    throw new LoadError(`${name}${cause.line === undefined ? '' : `:${cause.line}`}: ${cause.message}`, { cause })
  }
}

/** `readJson` is too slow for large documents without faults. */
function parseJson(text: string): ReturnType<typeof readJson> {
  let config: unknown
  try {
    config = JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch {
    return readJson(text)
  }
  let locate: ReturnType<typeof readJson>['locate'] | undefined
  return {
    config,
    locate(path) {
      locate ??= readJson(text).locate
      return locate(path)
    },
  }
}

function numbered(path: readonly (string | number)[], root: unknown): (string | number)[] {
  let value = root
  return path.map(key => {
    const step = Array.isArray(value) ? Number(key) : key
    value = isObject(value) || Array.isArray(value) ? Reflect.get(value, step) : undefined
    return step
  })
}

/** A main document, with the documents that its `$ref`s name. */
export type Documents = ReturnType<typeof createDocuments>

export function createDocuments(main: DocumentFile, load: Load) {
  const loaded = new Map([[main.url.href, main]])
  let bytes = 0
  return {
    main,
    /** Returns the document that a `$ref` names, if it is loaded. Otherwise throws a MissingDocument error. */
    of(url: URL, from: Place): DocumentFile {
      const found = loaded.get(url.href)
      if (!found) throw new MissingDocument(url, from)
      return found
    },
    /** Loads a document that `of` missed. Throws a DocumentError if it is not allowed or cannot be loaded. */
    async add({ url, place }: MissingDocument): Promise<void> {
      const fault = await outsideReason(main.url, url)
      if (fault !== undefined) throw new DocumentError(place, fault)
      if (loaded.size > MAX_REFERENCED)
        throw new DocumentError(place, `more than ${MAX_REFERENCED} other documents are referenced`)
      try {
        const name = relativeName(main, url)
        const other = await load(url, name, MAX_REFERENCED_BYTES - bytes)
        bytes += other.length
        loaded.set(url.href, parseDocument(url, name, other))
      } catch (cause) {
        if (cause instanceof LoadError) throw new DocumentError(place, cause.message)
        throw cause
      }
    },
  }
}

const relativeName = (main: DocumentFile, url: URL) =>
  url.protocol === 'file:'
    ? join(dirname(main.name), relative(dirname(fileURLToPath(main.url)), fileURLToPath(url)))
    : url.href

/** Returns why a document cannot be loaded: it is outside the main document's folder, or of another origin. */
async function outsideReason(main: URL, url: URL): Promise<string | undefined> {
  if (main.protocol !== 'file:') {
    if (url.origin === main.origin && url.protocol === main.protocol) return undefined
    return `references ${url.href}; only documents of ${main.origin} can be referenced`
  }
  if (url.protocol !== 'file:') return `references ${url.href}; a file can reference only files in its folder`
  const outside = 'references a file outside its folder'
  try {
    const folder = await realpath(dirname(fileURLToPath(main)))
    const path = await realpath(fileURLToPath(url))
    return path.startsWith(folder.endsWith(sep) ? folder : folder + sep) ? undefined : outside
  } catch {
    return 'references a file that is missing or cannot be read'
  }
}
