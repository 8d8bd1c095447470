// Decides whether Node runs the TypeScript of a module and of all that it imports by itself (type stripping, Node 22.18 and
// later), exactly as tsx would. In doubt it does not, and tsx does. For import-module.ts.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isObject } from '../mcp/is-object.ts'
import { linkModule, replaceModules } from './module-graph.ts'
import { readImports } from './static-imports.ts'
import { parseCommented, readTokens } from './tokens.ts'
import { hooksAreCheap } from './version-hooks.ts'

const canStrip = Boolean(Reflect.get(process.features, 'typescript')) && hooksAreCheap()

/** The nearest file of this name, in the folder or above. */
export function findAbove(name: string, folder: string): string | undefined {
  const file = join(folder, name)
  if (existsSync(file)) return file
  const above = dirname(folder)
  return above === folder ? undefined : findAbove(name, above)
}

/** What is loaded while the module runs: neither a first look nor `linkModule` sees what that would take. */
const LOADS_LATE = /\b(?:import|require|fork|Worker)\s*\(|\bcreateRequire\b/

/** Class fields are assigned then, and not defined. */
const OLD_TARGET = /^es(?:3|5|6|20(?:1\d|2[01]))$/i

/** tsx reads more of the tsconfig.json than Node, which reads none. */
function isPlain(tsconfig: string | undefined): boolean {
  if (tsconfig === undefined) return true
  try {
    const config = parseCommented(readTokens(readFileSync(tsconfig, 'utf8')))
    if (!isObject(config) || 'extends' in config) return false
    const options = isObject(config['compilerOptions']) ? config['compilerOptions'] : {}
    const differs = ['paths', 'baseUrl', 'useDefineForClassFields'].some(name => name in options)
    return !differs && !OLD_TARGET.test(String(options['target']))
  } catch {
    return false
  }
}

/** A `.ts` file that its package.json does not call a module is CommonJS to tsx. */
function isModule(file: string): boolean {
  if (/\.m[jt]s$/.test(file)) return true
  const manifest = /\.[jt]s$/.test(file) ? findAbove('package.json', dirname(file)) : undefined
  return manifest !== undefined && /"type"\s*:\s*"module"/.test(readFileSync(manifest, 'utf8'))
}

/** Whether the text of these files, and of those that they import by relative paths, means the same to Node. */
async function readsAlike(roots: readonly string[]): Promise<boolean> {
  const files = new Set(roots)
  for (const file of files) {
    if (file.endsWith('.json')) continue
    const { text, imports, isExact } = await readImports(file)
    if (!isExact || LOADS_LATE.test(text) || !isModule(file)) return false
    for (const imported of imports) files.add(imported)
  }
  return true
}

/** True: the module at this path is linked, and to be imported as it is. False: tsx has to be started first. */
export async function isStripped(file: string, tsconfig: string | undefined): Promise<boolean> {
  if (!canStrip || process.env['TSX_TSCONFIG_PATH'] !== undefined || !isPlain(tsconfig)) return false
  if (!(await readsAlike([file]))) return false
  const { isLinked, files } = await linkModule(file)
  // The files of workspace packages are found only by linking.
  if (isLinked && (await readsAlike(files))) return true
  const broken: string[] = []
  for (const one of files) if (isLinked || !(await linkModule(one)).isLinked) broken.push(one)
  replaceModules(broken)
  return false
}
