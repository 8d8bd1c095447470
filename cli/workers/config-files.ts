// The files that a config is made of, as far as its text tells: itself, the modules it names, and what these import by
// relative paths. Workers that have read different ones serve different things, which the primary tells.
import { createHash } from 'node:crypto'
import { dirname, relative } from 'node:path'
import { readImports } from '../../core/config/static-imports.ts'

/** A config of more is not looked at any further. */
const MOST_FILES = 5_000

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
    const { text, imports } = await readImports(file)
    digests.set(name, digestOf(text))
    waiting.push(...imports)
  }
  return Object.fromEntries(digests)
}

/** The names of files that are not the same in all of these. */
export function differingFiles(configs: ReadonlyArray<Readonly<Record<string, string>>>): string[] {
  const names = new Set(configs.flatMap(files => Object.keys(files)))
  return [...names].filter(name => new Set(configs.map(files => files[name])).size > 1).sort()
}
