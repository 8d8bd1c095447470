// Imports a config, a tool or a local plugin, including TypeScript.

import { accessSync, constants } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname } from 'node:path'
import { filesRead, imported, moduleUrl } from './module-graph.ts'
import { findAbove, linkStripped } from './type-stripping.ts'
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

async function registerTsx(found: string | undefined): Promise<void> {
  spareTemporaryFolder()
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
  // The CommonJS API reads only the variable. A JSON file without compilerOptions disables the tsconfig.
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
export function spareTemporaryFolder(): void {
  try {
    accessSync(tmpdir(), constants.W_OK)
  } catch {
    process.env['TSX_DISABLE_CACHE'] ||= '1'
  }
}
