// The project's modules in this process: which imports which, what changed since, and which version of each to import.
// Unchanged modules that import nothing changed stay the same.
import { createHash } from 'node:crypto'
import { statSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { hooksAreCheap, installHooks, type VersionHooks, versionedUrl } from './version-hooks.ts'

/** Before anything of the project was imported. A file's own clock may be a few milliseconds behind. */
const began = Date.now() - 20

const importers = new Map<string, Set<string>>()
/** When each file was changed last, as it was when it was imported; undefined: not seen then. */
const stamps = new Map<string, number | undefined>()
const versions: Record<string, number> = {}
/** Modules whose imports could not be found: they are imported anew though they did not change. */
const failed = new Set<string>()
/** The version of each file that was linked or imported last. */
const linked = new Map<string, number | undefined>()
let hooks: VersionHooks | undefined
let seesAll = false

/** Milliseconds; a touch counts as a change. 0: the file is gone. */
const stampOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.ctimeMs ?? 0

function note(parent: string | undefined, file: string, stamp: number | undefined): void {
  if (!stamps.has(file)) stamps.set(file, stamp)
  const known = importers.get(file) ?? new Set<string>()
  importers.set(file, known)
  if (parent !== undefined && parent !== file) known.add(parent)
}

/** Returns the files that were not linked before in their version. */
function drain(): string[] {
  const found: string[] = []
  for (const { parent, file } of hooks?.drain() ?? []) {
    if (file === undefined) {
      if (parent !== undefined) failed.add(parent)
      continue
    }
    note(parent, file, stampOf(file))
    if (linked.has(file) && linked.get(file) === versions[file]) continue
    linked.set(file, versions[file])
    found.push(file)
  }
  return found
}

const NOT_RUN = 'data:text/javascript,throw%20Symbol.for(%22mcp-host%20linked%22)'

/**
 * Links a module with all that it imports, and runs none of them: what is imported before it throws. `files`: those of the
 * project that were linked for the first time.
 */
export async function linkModule(file: string): Promise<{ readonly isLinked: boolean; readonly files: string[] }> {
  trackModules({ always: true })
  drain()
  const text = [NOT_RUN, moduleUrl(file)].map(url => `import ${JSON.stringify(url)}`).join('\n')
  const reason: unknown = await import(`data:text/javascript,${encodeURIComponent(text)}`).catch(error => error)
  return { isLinked: reason === Symbol.for('mcp-host linked'), files: drain() }
}

/** Imports these as other modules from now on: Node keeps those that it could not link. */
export function replaceModules(files: Iterable<string>): void {
  for (const file of files) versions[file] = (versions[file] ?? 0) + 1
  hooks?.setVersions(versions)
}

const required = createRequire(import.meta.url).cache
/** tsx may have a whole module in the key, or a query behind it. */
function fileOf(key: string): string {
  const [, path] = /[?&]filePath=([^&]*)$/.exec(key) ?? []
  return path === undefined ? (key.split('?')[0] ?? key) : decodeURIComponent(path)
}

/** Modules whose text was read for what it requires, as it is now: each import asks, and most know them all. */
const learned = new Set<string>()

/** What CommonJS modules require is seen by no hook everywhere; their text tells. */
async function learnRequired(): Promise<void> {
  const files = Object.keys(required).map(fileOf)
  await readGraph(
    files.filter(file => stamps.has(file) && !learned.has(file)),
    stampOf,
    learned,
  )
}

/** Sees from now on what is imported; where that would cost time, only if `always`. */
export function trackModules({ always = false }: { readonly always?: boolean } = {}): void {
  if (hooks || !(always || hooksAreCheap())) return
  hooks = installHooks()
  seesAll = filesRead.size === 0
}

/** Where the version of a module that is the one to import is. */
export const moduleUrl = (file: string): string => versionedUrl(pathToFileURL(file).href, versions[file])

/** A module that was asked for was imported, or could not be. */
export async function imported(file: string, isWhole: boolean): Promise<void> {
  if (!hooks) return
  note(undefined, file, stampOf(file))
  drain()
  await learnRequired()
  if (!isWhole) failed.add(file)
}

/** What nobody saw being imported, as far as its text tells. */
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

/** These and all that import them, directly or not. */
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
 * From the next import on, each module is as its file is now: those that changed are run again, and all that import them, and
 * `root`, the config, in any case; with `environment`, what looks at the environment too. Old versions stay in memory: Node
 * forgets no module.
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
    learned.delete(file)
    stamps.set(file, stampOf(file))
  }
  for (const key of Object.keys(required)) if (stale.has(fileOf(key))) delete required[key]
}

/** Every file of the project that was imported, or read as a config, and what plugins say that they read. */
export function projectFiles(): string[] {
  drain()
  return [...new Set([...filesRead, ...stamps.keys(), ...watched])]
}

/** SHA-256 of each file of the project, in base64url, by its path from the config. Empty for a file that is gone. */
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

/** `from './x'`, `import './x'`, `import('./x')`, `require('./x')`: in a comment too, which does no harm. */
const RELATIVE = /\b(?:from|import|require)\s*\(?\s*['"`](\.{1,2}\/[^'"`\n]+)['"`]/g

/** What may be imported by another name than the file's own. */
const ENDINGS = ['', '.ts', '.js', '.mts', '.mjs', '.cts', '.cjs', '.tsx', '.jsx', '.json', '/index.ts', '/index.js']

const isFile = (path: string) =>
  stat(path).then(
    found => found.isFile(),
    () => false,
  )

/** `./x.js` may be `./x.ts`, for TypeScript. */
const typescriptOf = (path: string) => path.replace(/\.([cm]?)js(x?)$/, '.$1ts$2')
const spellings = (path: string) => [...ENDINGS.map(ending => `${path}${ending}`), typescriptOf(path)]

async function findFile(path: string): Promise<string | undefined> {
  for (const spelling of spellings(path)) if (await isFile(spelling)) return spelling
  return undefined
}

export interface ReadFile {
  readonly text: string
  /** The files that it imports by relative paths, absolute. */
  readonly imports: readonly string[]
  /** Each relative path is the name of a file, and no `./x.js` could mean an `./x.ts`. */
  readonly isExact: boolean
}

/** The text of a file, and what it imports. One that cannot be read is empty. */
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

// The files that this process read a config from: the config first, then the tools and plugins that it names. Modules are
// loaded once in a process, so this is of the process too. Workers tell it to their primary.
export const filesRead: Set<string> = new Set()

/** The files and folders that plugins make of what they serve: `mcp-host dev` watches them. */
export const watched: Set<string> = new Set()
/** A plugin says that it reads this. */
export const noteRead = (path: string): void => void watched.add(path)
