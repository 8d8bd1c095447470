// Imports a config, a tool or a local plugin, also in TypeScript.

import { accessSync, constants } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname } from 'node:path'
import { filesRead, imported, moduleUrl } from './module-graph.ts'
import { findAbove, linkStripped } from './type-stripping.ts'
import { whileLoading } from './while-loading.ts'

const TYPESCRIPT = /\.[cm]?tsx?$/

/** Running from source means that tsx is there already. Under `node --import tsx` a second one does no harm. */
let registered: Promise<void> | undefined = TYPESCRIPT.test(import.meta.url) ? Promise.resolve() : undefined
/** Of the first file in TypeScript. */
let tsconfig: { readonly file: string | undefined } | undefined
let deciding: Promise<void> = Promise.resolve()

/**
 * The exports of the module at an absolute path. tsx is started for the whole process at the first TypeScript file,
 * which is the config where that is one, with the tsconfig.json that is nearest to it, in its folder or above; and
 * without a namespace: a config, its tools and this package share their modules. (A folder whose package.json has no
 * `"type": "module"` makes its `.ts` files CommonJS; those share modules with each other only.) Rejects with whatever
 * the module throws, and where it ends the process or does not finish. After `refreshModules` it is the module as its file is then.
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

/** Starts tsx, unless it is there or Node strips the types itself. One file at a time, so that `linkModule` sees its imports only. */
async function loadTypeScript(file: string): Promise<void> {
  tsconfig ??= { file: findAbove('tsconfig.json', dirname(file)) }
  if (!registered && (await linkStripped(file, tsconfig.file))) return
  registered ??= registerTsx(tsconfig.file)
  await registered
}

async function registerTsx(found: string | undefined): Promise<void> {
  spareTemporaryFolder()
  const [cjs, esm] = await Promise.all([import('tsx/cjs/api'), import('tsx/esm/api')])
  // Left to itself it would read the tsconfig.json of the working directory, whose paths are for other files.
  if (process.env['TSX_TSCONFIG_PATH'] !== undefined) {
    cjs.register()
    esm.register()
    return
  }
  esm.register({ tsconfig: registerCommonJs(cjs.register, found) ?? false })
}

/** Returns the tsconfig that is in force: one that cannot be read, as where it extends what is not installed, is none. */
function registerCommonJs(register: () => unknown, tsconfig: string | undefined): string | undefined {
  // Here it knows a variable alone. For none it is given a JSON file without compilerOptions: its own package.json.
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

/** A compiled CommonJS module arrives as the default export of its own namespace. */
function unwrap(namespace: Record<string, unknown>): Record<string, unknown> {
  const exported = namespace['default']
  const isCompiled = typeof exported === 'object' && exported !== null && '__esModule' in exported
  return isCompiled ? (exported as Record<string, unknown>) : namespace
}

/** tsx keeps what it compiled in the temporary folder, and in memory where that is not to be had. To be called before it is loaded. */
export function spareTemporaryFolder(): void {
  try {
    accessSync(tmpdir(), constants.W_OK)
  } catch {
    process.env['TSX_DISABLE_CACHE'] ||= '1'
  }
}
