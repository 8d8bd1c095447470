// Serves the built page: hashed assets with a permanent cache, and the entry for every other path.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants } from 'node:zlib'

const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  txt: 'text/plain; charset=utf-8',
  woff2: 'font/woff2',
}

const PAGE = 'dist/plugins/console/page/'
const ENTRY = 'index.html'

/** The folder of the built page in this package, for sources and for bundles; undefined before `npm run build`. */
export const findPage = (): string | undefined =>
  ['../', '../../', '../../../']
    .map(up => fileURLToPath(new URL(up + PAGE, import.meta.url)))
    .find(folder => existsSync(folder + ENTRY))

/** Of this package. */
export function ownVersion(): string {
  const files = ['../', '../../', '../../../'].map(up => fileURLToPath(new URL(`${up}package.json`, import.meta.url)))
  const file = files.find(one => existsSync(one))
  return file === undefined ? '' : String(JSON.parse(readFileSync(file, 'utf8')).version)
}

interface PageFile {
  readonly type: string
  readonly body: Buffer
  readonly brotli: Buffer | undefined
}

/** Files of at least this size are compressed. */
const SMALL = 1_024

function readPageFile(folder: string, name: string): PageFile {
  const body = readFileSync(folder + name)
  const type = TYPES[name.split('.').at(-1) ?? ''] ?? 'application/octet-stream'
  const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } }
  const isCompressed = existsSync(`${folder}${name}.br`)
  const brotli = isCompressed
    ? readFileSync(`${folder}${name}.br`)
    : body.length < SMALL
      ? undefined
      : brotliCompressSync(body, quality)
  return { type, body, brotli }
}

const takesBrotli = ({ headers }: IncomingMessage) =>
  /(?:^|,)\s*br\s*(?:,|;(?!\s*q=0(?:\.0*)?\s*(?:,|$))|$)/.test(String(headers['accept-encoding'] ?? ''))

/** Serves a fixed list of files, so that no path of a request reaches the file system. */
export function createPageServer(folder: string | undefined) {
  const names =
    folder === undefined
      ? []
      : readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(name => name.replaceAll('\\', '/'))
  const known = new Set(names.filter(name => /\.\w+$/.test(name) && !/\.(?:br|map|tsx?|json)$/.test(name)))
  const files = new Map<string, PageFile>()

  function fileOf(name: string): PageFile | undefined {
    if (folder === undefined || !known.has(name)) return undefined
    const file = files.get(name) ?? readPageFile(folder, name)
    files.set(name, file)
    return file
  }

  return {
    isBuilt: known.has(ENTRY),
    /** False if there is no page. */
    serve(path: string, req: IncomingMessage, res: ServerResponse): boolean {
      const asset = fileOf(path.slice(1))
      // Every other path is a screen of the page.
      const file = asset ?? (/\.\w+$/.test(path) ? undefined : fileOf(ENTRY))
      if (!file) return false
      const isHashed = asset !== undefined && /-[A-Z0-9]{8}\.\w+$/i.test(path)
      const body = file.brotli && takesBrotli(req) ? file.brotli : file.body
      res.writeHead(200, {
        'Content-Type': file.type,
        'Content-Length': body.length,
        'Cache-Control': isHashed ? 'public, max-age=31536000, immutable' : 'no-store',
        Vary: 'Accept-Encoding',
        ...(body === file.brotli && { 'Content-Encoding': 'br' }),
      })
      res.end(req.method === 'HEAD' ? undefined : body)
      return true
    },
  }
}
