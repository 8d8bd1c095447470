// Imports a config, a tool or a local plugin, including TypeScript.

import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { ParseError } from 'jsonc-parser'
import { isObject } from '../mcp/wire/message.ts'
import { filesRead, imported, linkModule, moduleUrl, readImports, replaceModules } from './module-graph.ts'
import { hasSynchronousHooks } from './version-hooks.ts'
import { whileLoading } from './while-loading.ts'

const TYPESCRIPT = /\.[cm]?tsx?$/

// When running from source, tsx is already active.
let registered: Promise<void> | undefined = TYPESCRIPT.test(import.meta.url) ? Promise.resolve() : undefined
let tsconfig: { readonly file: string | undefined } | undefined
let deciding: Promise<void> = Promise.resolve()

/**
 * Imports the module at an absolute path. The first TypeScript file starts tsx for the whole process, without a namespace, so
 * that config, tools and this package share modules.
 */
export async function importModule(file: string): Promise<Record<string, unknown>> {
  if (TYPESCRIPT.test(file)) {
    const decide = () => loadTypeScript(file)
    deciding = deciding.then(decide, decide)
    await deciding
  }
  filesRead.add(file)
  let isWhole = false
  try {
    const namespace = (await whileLoading(() => import(moduleUrl(file)))) as Record<string, unknown>
    isWhole = true
    return unwrap(namespace)
  } finally {
    await imported(file, isWhole)
  }
}

/** Starts tsx unless Node.js strips the types. Serialised, so that `linkModule` sees only this file's imports. */
async function loadTypeScript(file: string): Promise<void> {
  tsconfig ??= { file: findAbove('tsconfig.json', dirname(file)) }
  if (!registered && (await linkStripped(file, tsconfig.file))) return
  registered ??= registerTsx(tsconfig.file)
  await registered
}

// Node.js type stripping (22.18 and later) replaces tsx for modules whose imports it can run. tsx is used in all
// uncertain cases.

const canStrip = Boolean(Reflect.get(process.features, 'typescript')) && hasSynchronousHooks()

function findAbove(name: string, folder: string): string | undefined {
  const file = join(folder, name)
  if (existsSync(file)) return file
  const above = dirname(folder)
  return above === folder ? undefined : findAbove(name, above)
}

/** Run-time module loading, which neither `readImports` nor `linkModule` detects. */
const DYNAMIC_LOAD = /\b(?:import|require|fork|Worker)\s*\(|\bcreateRequire\b/

/** Targets for which tsx assigns class fields instead of defining them. */
const OLD_TARGET = /^es(?:3|5|6|20(?:1\d|2[01]))$/i

/** True if a tsconfig.json has no setting that changes behaviour in tsx. Node.js ignores the file. */
async function hasNoEffect(tsconfig: string | undefined): Promise<boolean> {
  if (tsconfig === undefined) return true
  try {
    const { parse } = await import('jsonc-parser')
    const errors: ParseError[] = []
    const config: unknown = parse(readFileSync(tsconfig, 'utf8'), errors, { allowTrailingComma: true })
    if (errors.length > 0) return false
    if (!isObject(config) || 'extends' in config) return false
    const options = isObject(config['compilerOptions']) ? config['compilerOptions'] : {}
    const differs = ['paths', 'baseUrl', 'useDefineForClassFields'].some(name => name in options)
    return !differs && !OLD_TARGET.test(String(options['target']))
  } catch {
    return false
  }
}

/** Without `"type": "module"` in package.json, tsx treats `.ts` files as CommonJS. */
function isModule(file: string): boolean {
  if (/\.m[jt]s$/.test(file)) return true
  const manifest = /\.[jt]s$/.test(file) ? findAbove('package.json', dirname(file)) : undefined
  return manifest !== undefined && /"type"\s*:\s*"module"/.test(readFileSync(manifest, 'utf8'))
}

async function areNodeCompatible(roots: readonly string[]): Promise<boolean> {
  const files = new Set(roots)
  for (const file of files) {
    if (file.endsWith('.json')) continue
    const { text, imports, isExact } = await readImports(file)
    if (!isExact || DYNAMIC_LOAD.test(text) || !isModule(file)) return false
    for (const imported of imports) files.add(imported)
  }
  return true
}

/** True: the module is linked and Node.js can import it. False: tsx must start before the import. */
async function linkStripped(file: string, tsconfig: string | undefined): Promise<boolean> {
  if (!canStrip || process.env['TSX_TSCONFIG_PATH'] !== undefined || !(await hasNoEffect(tsconfig))) return false
  if (!(await areNodeCompatible([file]))) return false
  const { isLinked, files } = await linkModule(file)
  if (isLinked && (await areNodeCompatible(files))) return true
  const unusable: string[] = []
  for (const linkedFile of files) if (isLinked || !(await linkModule(linkedFile)).isLinked) unusable.push(linkedFile)
  replaceModules(unusable)
  return false
}

async function registerTsx(found: string | undefined): Promise<void> {
  disableCacheIfUnwritable()
  const [cjs, esm] = await Promise.all([import('tsx/cjs/api'), import('tsx/esm/api')])
  // tsx would use the tsconfig.json of the working directory.
  if (process.env['TSX_TSCONFIG_PATH'] !== undefined) {
    cjs.register()
    esm.register()
    return
  }
  esm.register({ tsconfig: registerCommonJs(cjs.register, found) ?? false })
}

function registerCommonJs(register: () => unknown, tsconfig: string | undefined): string | undefined {
  // The CommonJS API of tsx reads only the variable. A JSON file without compilerOptions disables the tsconfig.
  const none = createRequire(import.meta.url).resolve('tsx/package.json')
  process.env['TSX_TSCONFIG_PATH'] = tsconfig ?? none
  try {
    register()
    return tsconfig
  } catch {
    process.env['TSX_TSCONFIG_PATH'] = none
    register()
    return undefined
  } finally {
    delete process.env['TSX_TSCONFIG_PATH']
  }
}

function unwrap(namespace: Record<string, unknown>): Record<string, unknown> {
  const exported = namespace['default']
  const isCompiled = typeof exported === 'object' && exported !== null && '__esModule' in exported
  return isCompiled ? (exported as Record<string, unknown>) : namespace
}

/** Without a writable temporary folder, tsx caches in memory. */
function disableCacheIfUnwritable(): void {
  try {
    accessSync(tmpdir(), constants.W_OK)
  } catch {
    process.env['TSX_DISABLE_CACHE'] ||= '1'
  }
}
