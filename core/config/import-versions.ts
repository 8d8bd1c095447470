// Adds file versions to import URLs, for version-hooks.ts and the loader thread (thread/main.ts).
import { statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const VERSION = 'mcp-host-version'
/** Query parameter of link-only.ts: the URL of the module to link. */
export const LINKED = 'mcp-host-linked'

export interface SeenImport {
  readonly parent: string | undefined
  readonly file: string | undefined
  /** Change time before the file is read, so that later changes are detected. */
  readonly stamp?: number
}

/** Returns the change time (`ctime`) in milliseconds. 0: the file does not exist. */
export const stampOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.ctimeMs ?? 0

/** Versions by path. Other files have no version. */
export type Versions = Readonly<Record<string, number>>

export interface ImportContext {
  readonly parentURL?: string | undefined
  readonly conditions?: readonly string[]
}

export interface Found {
  readonly url: string
}

export type Next<Result> = (specifier: string, context: ImportContext) => Result

interface ImportRecorder {
  readonly own: readonly string[]
  readonly note: (one: SeenImport) => void
}

function withoutVersion(url: string): URL {
  const parsed = new URL(url)
  if (url.includes(VERSION)) parsed.searchParams.delete(VERSION)
  return parsed
}

/** Removes the query, which tsx can encode into the path. */
function pathOf(url: string | undefined): string | undefined {
  try {
    return url?.startsWith('file:') ? fileURLToPath(url.split(/[?#]|%3F/i)[0] ?? '') : undefined
  } catch {
    return undefined
  }
}

const isForeign = (path: string, own: readonly string[]): boolean =>
  /[\\/]node_modules[\\/]/.test(path) || own.some(folder => path.startsWith(folder))

export function noteFailed({ parentURL }: ImportContext, { own, note }: ImportRecorder): void {
  const parent = pathOf(parentURL)
  if (parent !== undefined && !isForeign(parent, own)) note({ parent, file: undefined })
}

export function addVersion<Result extends Found>(
  found: Result,
  { parentURL, conditions = [] }: ImportContext,
  { own, note, versions }: ImportRecorder & { readonly versions: Versions },
): Result {
  const file = pathOf(found.url)
  if (file === undefined || isForeign(file, own)) return found
  note({ parent: pathOf(parentURL), file, stamp: stampOf(file) })
  // Node.js caches required modules by path only.
  const isRequired = conditions.includes('require') && !conditions.includes('import')
  const version = isRequired ? undefined : versions[file]
  // Keeps a version that the hooks of another copy of this package added.
  if (version === undefined && !isRequired) return found
  const url = withoutVersion(found.url)
  if (version !== undefined) url.searchParams.set(VERSION, String(version))
  return { ...found, url: url.href }
}
