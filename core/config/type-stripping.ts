// Decides whether Node.js type stripping (22.18 and later) can replace tsx for a module and its imports. When in doubt, tsx is
// used.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { ParseError } from 'jsonc-parser'
import { isObject } from '../mcp/is-object.ts'
import { linkModule, readImports, replaceModules } from './module-graph.ts'
import { hooksAreCheap } from './version-hooks.ts'

const canStrip = Boolean(Reflect.get(process.features, 'typescript')) && hooksAreCheap()

export function findAbove(name: string, folder: string): string | undefined {
  const file = join(folder, name)
  if (existsSync(file)) return file
  const above = dirname(folder)
  return above === folder ? undefined : findAbove(name, above)
}

/** Run-time module loading, which neither `readImports` nor `linkModule` detects. */
const DYNAMIC_LOAD = /\b(?:import|require|fork|Worker)\s*\(|\bcreateRequire\b/

/** Targets for which tsx assigns class fields instead of defining them. */
const OLD_TARGET = /^es(?:3|5|6|20(?:1\d|2[01]))$/i

/** Whether a tsconfig.json has no setting that changes behaviour in tsx. Node.js ignores the file. */
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
export async function linkStripped(file: string, tsconfig: string | undefined): Promise<boolean> {
  if (!canStrip || process.env['TSX_TSCONFIG_PATH'] !== undefined || !(await hasNoEffect(tsconfig))) return false
  if (!(await areNodeCompatible([file]))) return false
  const { isLinked, files } = await linkModule(file)
  if (isLinked && (await areNodeCompatible(files))) return true
  const unusable: string[] = []
  for (const linkedFile of files) if (isLinked || !(await linkModule(linkedFile)).isLinked) unusable.push(linkedFile)
  replaceModules(unusable)
  return false
}
