// Puts the packages that would bring most of an installation into our own: each in one file of `dist`, which is read where
// the package is asked for, and the licences of all that is in them in another. For build/bundle-package.ts.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { type InstalledPackage, manifestOf } from './measure-install.ts'

const require = createRequire(import.meta.url)

/** As installed they would be 100 packages and 20 MB; they are development's dependencies, in the versions of the lock file. */
export const BUNDLED = [
  ...['koa-body', 'cosmiconfig', 'jsonwebtoken', 'jwks-rsa', 'yaml'],
  ...['oauth4webapi', 'import-meta-resolve', 'chokidar'],
] as const

/** What they look for and can do without: cosmiconfig for loaders that are not used, debug for its colours. */
const NOT_FOUND = ['typescript', 'supports-color']

/**
 * More than half of koa-body's weight, which nobody would ever read: the messages of zod in other languages than the one that
 * it falls back on; charsets but Unicode, for a body that is not in UTF-8 is refused before koa-body sees it; and the table of
 * media types by their short names, for it is asked for whole ones.
 */
const LEFT_OUT: ReadonlyArray<readonly [files: RegExp, instead: string]> = [
  [/\/zod\/v4\/locales\/index\.js$/, "export { default as en } from './en.js'"],
  [/\/mime-db\/db\.json$/, 'module.exports = {}'],
  [/\/iconv-lite\/encodings\/[ds]bcs-data(?:-generated)?\.js$/, 'module.exports = {}'],
]

const leaveOut: Plugin = {
  name: 'leave-out',
  setup(bundling) {
    for (const [filter, contents] of LEFT_OUT) bundling.onLoad({ filter }, () => ({ contents, loader: 'js' }))
  },
}

/** Beside the chunks, which find them there. */
const FOLDER = 'core/packages'
const FROM_CHUNKS = '../packages'
const LICENCES = 'licenses.txt'

export const isBundled = (path: string): boolean => path.startsWith(`${FROM_CHUNKS}/`)

/** Has our own code look for them there. */
export const findBundled: Plugin = {
  name: 'find-bundled',
  setup(bundling) {
    bundling.onResolve({ filter: new RegExp(`^(?:${BUNDLED.join('|')})$`) }, ({ path }) => ({
      path: `${FROM_CHUNKS}/${path}.js`,
      external: true,
    }))
  },
}

/** Each is an entry with the exports that Node finds in it: those of CommonJS esbuild would leave in the default one. */
const withExports = (root: string): Plugin => ({
  name: 'with-exports',
  setup(bundling) {
    bundling.onResolve({ filter: /./ }, ({ path, kind }) =>
      kind === 'entry-point' ? { path, namespace: 'entry' } : undefined,
    )
    bundling.onLoad({ filter: /./, namespace: 'entry' }, async ({ path }) => {
      const [imported, required] = [await import(path), require(path)]
      // A package may be both: what is bundled is the module then.
      const exported = imported.default === required ? required : imported
      const names = Object.keys(exported).filter(
        name => /^[A-Za-z_]\w*$/.test(name) && name !== 'default' && name !== '__esModule',
      )
      const lines = [
        `import * as all from '${path}'`,
        ...('default' in imported ? ['const { default: whole = all } = all', 'export default whole'] : []),
        ...names.map(name => `export const ${name} = all.${name}`),
      ]
      return { contents: lines.join('\n'), resolveDir: root }
    })
  },
})

/** The folders of the packages that these files are of. */
const foldersOf = (files: readonly string[]): string[] => [
  ...new Set(files.flatMap(file => /.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(resolve(file))?.[0] ?? [])),
]

function licenceText(folder: string): string {
  const named = readdirSync(folder).filter(name => /licen[cs]e|copying/i.test(name) && !name.endsWith('.js'))
  if (named.length === 0) throw new Error(`${folder} has no text of its licence`)
  return named.map(name => readFileSync(join(folder, name), 'utf8').trim()).join('\n\n')
}

const OPENING = `mcp-host has these packages in it, in the files of ${FOLDER}. Each is under its own licence.\n`
const HEADING = /^=== (\S+)@(\S+) \((.+)\)$/gm

/** Licences of the same words share them, each package with the lines before them: whose it is. */
function writeLicences(dist: string, folders: readonly string[]): void {
  const known = new Map<string, { readonly words: string; readonly packages: string[] }>()
  for (const folder of folders) {
    const { name, version, licence } = manifestOf(folder)
    const text = licenceText(folder)
    const at = Math.max(0, text.search(/^ *Permission (?:is hereby granted|to use, copy)/m))
    const words = text.slice(at)
    const key = words.replace(/\s+/g, ' ')
    const packages = known.get(key)?.packages ?? ([] as string[])
    packages.push(`=== ${name}@${version} (${licence})\n${text.slice(0, at).trim()}`.trim())
    known.set(key, { words, packages })
  }
  const parts = [...known.values()].map(({ words, packages }) => `${packages.sort().join('\n\n')}\n\n${words}\n`)
  writeFileSync(join(dist, LICENCES), [OPENING, ...parts.sort()].join('\n'))
}

/** What is in the package in this folder, by the file of licences that its build wrote. */
export function bundledIn(root: string): InstalledPackage[] {
  const text = readFileSync(join(root, 'dist', LICENCES), 'utf8')
  return [...text.matchAll(HEADING)].map(([, name = '', version = '', licence = '']) => ({ name, version, licence }))
}

/** Into `dist` of the package in this folder, after our own code. */
export async function bundleDependencies(root: string, target: string): Promise<void> {
  const dist = join(root, 'dist')
  const { metafile } = await build({
    entryPoints: [...BUNDLED],
    outdir: join(dist, FOLDER),
    chunkNames: 'shared-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target,
    // Texts of other people, which nobody reads here: tables of letters are half as long in UTF-8.
    minify: true,
    charset: 'utf8',
    legalComments: 'none',
    lineLimit: 120,
    metafile: true,
    external: NOT_FOUND,
    plugins: [withExports(root), leaveOut],
    // What is CommonJS requires Node's own modules.
    banner: {
      js: "import { createRequire as requireAt } from 'node:module';const require=requireAt(import.meta.url);",
    },
    logLevel: 'warning',
  })
  for (const name of BUNDLED) {
    if (!existsSync(join(dist, FOLDER, `${name}.js`))) throw new Error(`${name} is in no file of its own`)
  }
  const files = Object.values(metafile.outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([file, { bytesInOutput }]) => (bytesInOutput > 0 ? file : [])),
  )
  writeLicences(dist, foldersOf(files))
}
