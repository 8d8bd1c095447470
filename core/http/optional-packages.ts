// Checks optional peer packages. If a package is missing, the error contains its install command.
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Path, StartError } from './errors.ts'

/** The config keys that require the package, or a description. */
export type NeededBy = { readonly at: Path } | { readonly what: string }

const require = createRequire(import.meta.url)
const HERE = dirname(fileURLToPath(import.meta.url))

/** True if only `require` finds the package, in NODE_PATH or in global folders. */
function isOnlyRequirable(name: string): boolean {
  const hasPackage = (folder: string) => existsSync(join(folder, name))
  const isOnImportPath = (folder: string) =>
    basename(folder) === 'node_modules' && !relative(dirname(folder), HERE).startsWith('..')
  const folders = require.resolve.paths(name) ?? []
  return !folders.some(folder => isOnImportPath(folder) && hasPackage(folder)) && folders.some(hasPackage)
}

export function isInstalled(name: string): boolean {
  if (isOnlyRequirable(name)) return false
  try {
    require.resolve(name)
    return true
  } catch (error) {
    // The package is installed but can have entries for `import` only.
    return (error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND'
  }
}

function peerRanges(folder = HERE): Readonly<Record<string, string>> {
  try {
    const { name, peerDependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    if (name === 'mcp-host') return peerDependencies
  } catch {}
  const parent = dirname(folder)
  return parent === folder ? {} : peerRanges(parent)
}

/** Returns the install command, such as `npm i prom-client@15`, with the tested major version. */
export function installHint(names: readonly string[], flag?: '-D' | '--save-prod'): string {
  const ranges = peerRanges()
  const wanted = names.map(name => {
    const major = /\d+/.exec(ranges[name] ?? '')?.[0]
    return major === undefined ? name : `${name}@${major}`
  })
  return ['npm i', ...(flag ? [flag] : []), ...wanted].join(' ')
}

/**
 * Throws a StartError with the install command of the missing packages. For `setup`: `assertInstalled(['prom-client'], { at:
 * host.config.at })`.
 */
export function assertInstalled(names: readonly string[], by: NeededBy): void {
  const missing = names.filter(name => !isInstalled(name))
  if (missing.length === 0) return
  const which = missing.length > 1 ? 'are optional packages that are' : 'is an optional package that is'
  const text = `needs ${missing.join(' and ')}, which ${which} not installed; run: `
  // A plain `npm i` would leave the package in devDependencies.
  if ('at' in by) throw new StartError('MH1040', `${text}${installHint(missing, '--save-prod')}`, { at: by.at })
  throw new StartError('MH1040', `${by.what} ${text}${installHint(missing)}`, { exitCode: 1 })
}
