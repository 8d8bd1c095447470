// Imports a config, a tool or a local plugin, TypeScript included.
// The one place that starts tsx, and the one that irons out CommonJS; load-config.ts and the catalog come through here.
import { pathToFileURL } from 'node:url'
import { filesRead } from './files-read.ts'

const TYPESCRIPT = /\.[cm]?tsx?$/

let registered: Promise<void> | undefined

/**
 * The exports of the module at an absolute path. tsx is started for the whole process at the first TypeScript file,
 * without a namespace: a config, its tools and this package share their modules. (A folder whose package.json has no
 * `"type": "module"` makes its `.ts` files CommonJS; those share modules with each other only.) Rejects with whatever
 * the module throws.
 */
export async function importModule(file: string): Promise<Record<string, unknown>> {
  if (TYPESCRIPT.test(file)) {
    registered ??= registerTsx()
    await registered
  }
  filesRead.add(file)
  return unwrap(await import(pathToFileURL(file).href))
}

async function registerTsx(): Promise<void> {
  // Running from source means that tsx is there already. Under `node --import tsx` a second one does no harm.
  if (TYPESCRIPT.test(import.meta.url)) return
  const [cjs, esm] = await Promise.all([import('tsx/cjs/api'), import('tsx/esm/api')])
  cjs.register()
  esm.register()
}

/** A compiled CommonJS module arrives as the default export of its own namespace. */
function unwrap(namespace: Record<string, unknown>): Record<string, unknown> {
  const exported = namespace['default']
  const isCompiled = typeof exported === 'object' && exported !== null && '__esModule' in exported
  return isCompiled ? (exported as Record<string, unknown>) : namespace
}
