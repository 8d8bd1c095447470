// Tracks imports, changes and versions of the project's modules. Unchanged modules with unchanged imports are kept on reload.
import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { LINKED, stampOf } from './import-versions.ts'
import { hasSynchronousHooks, installHooks, type VersionHooks, versionedUrl } from './version-hooks.ts'

/** The time before the first project import, because file timestamps can lag by a few milliseconds. */
const began = Date.now() - 20

const importers = new Map<string, Set<string>>()
/** Change time of each file before its import; undefined: not recorded. */
const stamps = new Map<string, number | undefined>()
const versions: Record<string, number> = {}
/** Modules with unresolved imports, which are imported again even if unchanged. */
const failed = new Set<string>()
const linked = new Map<string, number | undefined>()
let hooks: VersionHooks | undefined
let seesAll = false

function note(parent: string | undefined, file: string, stamp: number | undefined): void {
  if (!stamps.has(file)) stamps.set(file, stamp)
  const known = importers.get(file) ?? new Set<string>()
  importers.set(file, known)
  if (parent !== undefined && parent !== file) known.add(parent)
}

function drain(): string[] {
  const found: string[] = []
  for (const { parent, file, stamp } of hooks?.drain() ?? []) {
    if (file === undefined) {
      if (parent !== undefined) failed.add(parent)
      continue
    }
    note(parent, file, stamp)
    if (linked.has(file) && linked.get(file) === versions[file]) continue
    linked.set(file, versions[file])
    found.push(file)
  }
  return found
}

let links = 0

/** Links a module and its imports without running them. `files`: project files that were linked for the first time. */
export async function linkModule(file: string): Promise<{ readonly isLinked: boolean; readonly files: string[] }> {
  trackModules({ always: true })
  drain()
  // Only compiled code reaches this line. Node caches failed modules by URL.
  const entry = new URL('../config/link-only.js', import.meta.url)
  entry.search = new URLSearchParams({ [LINKED]: moduleUrl(file), link: String(++links) }).toString()
  const reason: unknown = await import(entry.href).catch(error => error)
  return { isLinked: reason === Symbol.for('mcp-host linked'), files: drain() }
}

/** Imports these files under new URLs, because Node caches modules that failed to link. */
export function replaceModules(files: Iterable<string>): void {
  for (const file of files) versions[file] = (versions[file] ?? 0) + 1
  hooks?.setVersions(versions)
}

const required = createRequire(import.meta.url).cache
/** tsx can put a complete module or a query into the key. */
function fileOf(key: string): string {
  const [, path] = /[?&]filePath=([^&]*)$/.exec(key) ?? []
  return path === undefined ? (key.split('?')[0] ?? key) : decodeURIComponent(path)
}

const scanned = new Set<string>()

/** Scans CommonJS modules for `require`, which hooks do not see on every Node version. */
async function scanRequired(): Promise<void> {
  const files = Object.keys(required).map(fileOf)
  const known = files.filter(file => stamps.has(file))
  await readGraph(known, stampOf, scanned)
}

/** Starts tracking imports, where hooks are expensive only if `always` is set. */
export function trackModules({ always = false }: { readonly always?: boolean } = {}): void {
  if (hooks || !(always || hasSynchronousHooks())) return
  hooks = installHooks()
  seesAll = filesRead.size === 0
}

export const moduleUrl = (file: string): string => versionedUrl(pathToFileURL(file).href, versions[file])

export async function imported(file: string, isWhole: boolean): Promise<void> {
  if (!hooks) return
  drain()
  note(undefined, file, stampOf(file))
  await scanRequired()
  if (!isWhole) failed.add(file)
}

async function readGraph(
  roots: readonly string[],
  stamp: (file: string) => number | undefined,
  read = new Set<string>(),
): Promise<void> {
  const waiting = [...roots]
  for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
    if (read.has(file)) continue
    read.add(file)
    note(undefined, file, stamp(file))
    for (const path of (await readImports(file)).imports) {
      note(file, path, stamp(path))
      waiting.push(path)
    }
  }
}

function withImporters(files: Iterable<string>): Set<string> {
  const all = new Set(files)
  for (const file of all) for (const importer of importers.get(file) ?? []) all.add(importer)
  return all
}

const hasChanged = (file: string, stamp: number | undefined): boolean => {
  const now = stampOf(file)
  return stamp === undefined ? now === 0 || now > began : now !== stamp
}

async function readsEnvironment(file: string): Promise<boolean> {
  return /\bprocess\b[\s\S]{0,20}\benv\b|node:process/.test((await readImports(file)).text)
}

/**
 * Reloads changed modules, their importers and `root` (the config) at the next import; with `environment` also modules that read
 * environment variables. Old versions stay in memory.
 */
export async function refreshModules(root: string, { environment = false } = {}): Promise<void> {
  trackModules({ always: true })
  drain()
  if (!seesAll) await readGraph([root, ...filesRead], () => undefined)
  seesAll = true
  const changed = new Set([root, ...failed])
  for (const [file, stamp] of stamps) {
    if (hasChanged(file, stamp) || (environment && (await readsEnvironment(file)))) changed.add(file)
  }
  failed.clear()
  const stale = withImporters(changed)
  replaceModules(stale)
  for (const file of stale) {
    scanned.delete(file)
    stamps.set(file, stampOf(file))
  }
  for (const key of Object.keys(required)) if (stale.has(fileOf(key))) delete required[key]
}

export function projectFiles(): string[] {
  drain()
  return [...new Set([...filesRead, ...stamps.keys(), ...watched])]
}

/** Returns the SHA-256 (base64url) of each project file, by path relative to the config. Empty for a deleted file. */
export async function digestProject(config: string): Promise<Record<string, string>> {
  await readGraph([...filesRead], () => undefined)
  const files = [...new Set([...filesRead, ...stamps.keys()])]
  const digest = async (file: string) =>
    createHash('sha256')
      .update(await readFile(file))
      .digest('base64url')
  return Object.fromEntries(
    await Promise.all(files.map(async file => [relative(dirname(config), file), await digest(file).catch(() => '')])),
  )
}

const RELATIVE = /\b(?:from|import|require)\s*\(?\s*['"`](\.{1,2}\/[^'"`\n]+)['"`]/g

const ENDINGS = ['', '.ts', '.js', '.mts', '.mjs', '.cts', '.cjs', '.tsx', '.jsx', '.json', '/index.ts', '/index.js']

const isFile = (path: string) =>
  stat(path).then(
    found => found.isFile(),
    () => false,
  )

const typescriptOf = (path: string) => path.replace(/\.([cm]?)js(x?)$/, '.$1ts$2')
const spellings = (path: string) => [...ENDINGS.map(ending => `${path}${ending}`), typescriptOf(path)]

async function findFile(path: string): Promise<string | undefined> {
  for (const spelling of spellings(path)) if (await isFile(spelling)) return spelling
  return undefined
}

export interface ReadFile {
  readonly text: string
  readonly imports: readonly string[]
  /** True if every relative path names an existing file, without `./x.js` for `./x.ts`. */
  readonly isExact: boolean
}

export async function readImports(file: string): Promise<ReadFile> {
  const text = await readFile(file, 'utf8').catch(() => '')
  const imports: string[] = []
  let isExact = true
  for (const [, path = ''] of text.matchAll(RELATIVE)) {
    const wanted = resolve(dirname(file), path)
    const imported = await findFile(wanted)
    if (imported !== undefined) imports.push(imported)
    const typescript = typescriptOf(wanted)
    if (imported !== wanted || (typescript !== wanted && (await isFile(typescript)))) isExact = false
  }
  return { text, imports, isExact }
}

// Files from which this process read its config, the config first. Per process, because modules are loaded once. Workers send it
// to their primary.
export const filesRead: Set<string> = new Set()

export const watched: Set<string> = new Set()
export const recordRead = (path: string): void => void watched.add(path)
