// The files that a config is made of, as far as its text tells: itself, the modules it names, and what these import by
// relative paths. Workers that have read different ones serve different things, which the primary tells.
import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { dirname, relative, resolve } from 'node:path'

/** A config of more is not looked at any further. */
const MOST_FILES = 5_000

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
const spellings = (path: string) => [
  ...ENDINGS.map(ending => `${path}${ending}`),
  path.replace(/\.([cm]?)js(x?)$/, '.$1ts$2'),
]

async function findFile(path: string): Promise<string | undefined> {
  for (const spelling of spellings(path)) if (await isFile(spelling)) return spelling
  return undefined
}

const digestOf = (text: string) => createHash('sha256').update(text).digest('base64url').slice(0, 16)

/** A digest of each of these files and of what they import, by its path from the folder of the first, the config. */
export async function readConfigFiles(roots: readonly string[]): Promise<Record<string, string>> {
  const folder = dirname(roots[0] ?? '.')
  const digests = new Map<string, string>()
  const waiting = [...roots]
  for (let file = waiting.shift(); file !== undefined && digests.size < MOST_FILES; file = waiting.shift()) {
    const name = relative(folder, file)
    if (digests.has(name)) continue
    // A file that is gone by now is one that has changed.
    const text = await readFile(file, 'utf8').catch(() => '')
    digests.set(name, digestOf(text))
    for (const [, path = ''] of text.matchAll(RELATIVE)) {
      const imported = await findFile(resolve(dirname(file), path))
      if (imported !== undefined) waiting.push(imported)
    }
  }
  return Object.fromEntries(digests)
}

/** The names of files that are not the same in all of these. */
export function differingFiles(configs: ReadonlyArray<Readonly<Record<string, string>>>): string[] {
  const names = new Set(configs.flatMap(files => Object.keys(files)))
  return [...names].filter(name => new Set(configs.map(files => files[name])).size > 1).sort()
}
