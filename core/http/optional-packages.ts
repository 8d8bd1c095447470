// Packages that only some installations need: package.json names them as optional peers, so whoever uses what needs one
// installs it beside mcp-host. What is missing is told with the line that installs it, by this file alone.
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Path, StartError } from './errors.ts'

/** Where the missing package is told: the keys of the config that need it, or what needs it in words. */
export type NeededBy = { readonly at: Path } | { readonly what: string }

const require = createRequire(import.meta.url)
const HERE = dirname(fileURLToPath(import.meta.url))

/** Whether it is only where `require` looks and `import` does not: in NODE_PATH, or in folders of the user's and of Node's. */
function isForRequireAlone(name: string): boolean {
  const isThere = (folder: string) => existsSync(join(folder, name))
  const isAbove = (folder: string) =>
    basename(folder) === 'node_modules' && !relative(dirname(folder), HERE).startsWith('..')
  const folders = require.resolve.paths(name) ?? []
  return !folders.some(folder => isAbove(folder) && isThere(folder)) && folders.some(isThere)
}

/** True where `import` finds the package from here; nothing of it is loaded. */
export function isInstalled(name: string): boolean {
  if (isForRequireAlone(name)) return false
  try {
    require.resolve(name)
    return true
  } catch (error) {
    // It is there, and may be for `import` alone.
    return (error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND'
  }
}

/** The ranges of our own package.json: of the nearest one above, wherever this file was bundled to. */
function peerRanges(folder = HERE): Readonly<Record<string, string>> {
  try {
    const { name, peerDependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    if (name === 'mcp-host') return peerDependencies
  } catch {
    // None here: look above.
  }
  const parent = dirname(folder)
  return parent === folder ? {} : peerRanges(parent)
}

/** `npm i prom-client@15`: of the generation that we are tested with. No sign in it means something to a shell. `flag`: of npm. */
export function installLine(names: readonly string[], flag?: '-D' | '--save-prod'): string {
  const ranges = peerRanges()
  const wanted = names.map(name => {
    const generation = /\d+/.exec(ranges[name] ?? '')?.[0]
    return generation === undefined ? name : `${name}@${generation}`
  })
  return ['npm i', ...(flag ? [flag] : []), ...wanted].join(' ')
}

/**
 * Throws a StartError with the one line that installs what is missing of these packages, which are optional peers of
 * mcp-host. For plugins in `setup`, so that `mcp-host check` tells it, too: `assertInstalled(['prom-client'], { at: host.at })`.
 */
export function assertInstalled(names: readonly string[], by: NeededBy): void {
  const missing = names.filter(name => !isInstalled(name))
  if (missing.length === 0) return
  const which = missing.length > 1 ? 'are optional packages that are' : 'is an optional package that is'
  const text = `needs ${missing.join(' and ')}, which ${which} not installed; run: `
  // A config needs it in production, and `npm i` alone leaves it in devDependencies where it is there already.
  if ('at' in by) throw new StartError(`${text}${installLine(missing, '--save-prod')}`, { at: by.at })
  throw new StartError(`${by.what} ${text}${installLine(missing)}`, { exitCode: 1 })
}
