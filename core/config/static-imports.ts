// What a module's text says that it imports by relative paths, without running anything. For those who must know the files
// of a config and did not see them being imported.
import { readFile, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

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
const typescriptOf = (path: string) => path.replace(/\.([cm]?)js(x?)$/, '.$1ts$2')
const spellings = (path: string) => [...ENDINGS.map(ending => `${path}${ending}`), typescriptOf(path)]

async function findFile(path: string): Promise<string | undefined> {
  for (const spelling of spellings(path)) if (await isFile(spelling)) return spelling
  return undefined
}

export interface ReadFile {
  readonly text: string
  /** The files that it imports by relative paths, absolute. */
  readonly imports: readonly string[]
  /** Each relative path is the name of a file, and no `./x.js` could mean an `./x.ts`. */
  readonly isExact: boolean
}

/** The text of a file, and what it imports. One that cannot be read is empty. */
export async function readImports(file: string): Promise<ReadFile> {
  const text = await readFile(file, 'utf8').catch(() => '')
  const imports: string[] = []
  let isExact = true
  for (const [, path = ''] of text.matchAll(RELATIVE)) {
    const wanted = resolve(dirname(file), path)
    const imported = await findFile(wanted)
    if (imported !== undefined) imports.push(imported)
    const typescript = typescriptOf(wanted)
    if (imported !== wanted || (typescript !== wanted && (await isFile(typescript)))) isExact = false
  }
  return { text, imports, isExact }
}
