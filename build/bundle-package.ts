// Bundles our own compiled modules in `dist` into fewer files, the last step of `npm run build`: loading four hundred modules
// took half of the startup time. Dependencies are never bundled. Names are kept and lines are short, for readable stack traces.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Plugin, transformSync } from 'esbuild'

/** Every file that package.json names: what is imported from outside, and the bin. All share one instance of each module. */
function entryPoints(root: string): string[] {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const named: string[] = []
  JSON.stringify([manifest.exports, manifest.bin], (_key, value) => {
    if (typeof value === 'string' && value.endsWith('.js')) named.push(value)
    return value
  })
  return [...new Set(named)].map(file => join(root, file))
}

/** Entries of threads and processes. They share no chunks with the other entries: common chunks would be more and smaller. */
const threadEntries = (dist: string): string[] =>
  listScripts(dist).flatMap(file => (/(?:^|\/)(?:thread|process)\/main\.js$/.test(file) ? join(dist, file) : []))

/** Files that are not bundled: validators of build/write-validators.ts, and modules that link others without running them. */
const isKept = (file: string): boolean => /(?:^|\/)(?:built-[\w-]+|link-only|throw-linked)\.js$/.test(file)

/** Where chunks are: two folders down, as the files of core were that look for others from where they are. */
const CHUNKS = 'core/chunks'

/** Leaves them out of the chunks, which find them where they are. */
const keepGenerated = (dist: string): Plugin => ({
  name: 'keep-generated',
  setup(bundling) {
    bundling.onResolve({ filter: /\/built-[\w-]+\.js$/ }, ({ path, resolveDir }) => ({
      path: relative(join(dist, CHUNKS), join(resolveDir, path)).replaceAll('\\', '/'),
      external: true,
    }))
  },
})

const require = createRequire(import.meta.url)

/** Dependencies in CommonJS that a start imports. */
const IN_COMMONJS = [
  ...[
    'koa',
    'koa-compose',
    'koa-mount',
    '@koa/cors',
    'pino',
    'negotiator',
    'proxy-addr',
    'fastest-levenshtein',
    'yaml',
  ],
] as const

/**
 * Has them required: of what is imported Node reads the text once more, for the names of its exports, and that of all that
 * it re-exports, which was an eighth of a start.
 */
const requireCommonJs: Plugin = {
  name: 'require-commonjs',
  setup(bundling) {
    const filter = new RegExp(`^(?:${IN_COMMONJS.join('|')})$`)
    bundling.onResolve({ filter }, ({ path, kind }) =>
      kind === 'require-call' ? undefined : { path, namespace: 'required' },
    )
    bundling.onLoad({ filter, namespace: 'required' }, ({ path }) => {
      const names = Object.keys(require(path)).filter(name => /^[A-Za-z]\w*$/.test(name) && name !== 'default')
      const lines = [
        `import { createRequire } from 'node:module'`,
        `const required = createRequire(import.meta.url)('${path}')`,
        'export default required',
        ...names.map(name => `export const ${name} = required.${name}`),
      ]
      return { contents: lines.join('\n') }
    })
  },
}

const TARGET = 'node20.19'

const listScripts = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(file => file.endsWith('.js'))

function minify(file: string): void {
  const { code } = transformSync(readFileSync(file, 'utf8'), { format: 'esm', minify: true, target: TARGET })
  writeFileSync(file, code)
}

async function bundle(entries: readonly string[], dist: string, created: string): Promise<void> {
  const { metafile } = await build({
    entryPoints: [...entries],
    outbase: dist,
    outdir: created,
    bundle: true,
    splitting: true,
    chunkNames: `${CHUNKS}/[name]-[hash]`,
    format: 'esm',
    platform: 'node',
    target: TARGET,
    minifyWhitespace: true,
    minifySyntax: true,
    lineLimit: 120,
    metafile: true,
    packages: 'external',
    plugins: [keepGenerated(dist), requireCommonJs],
    logLevel: 'warning',
  })
  for (const [output, { imports }] of Object.entries(metafile.outputs)) {
    const isLost = imports.some(({ path }) => isKept(path)) && !output.includes(`/${CHUNKS}/`)
    if (isLost) throw new Error(`${output} imports what only chunks find`)
  }
}

/** Of the package in this folder, whose `dist` is compiled. */
export async function bundlePackage(root: string): Promise<void> {
  const dist = join(root, 'dist')
  const made = join(root, 'dist.bundled')
  for (const entries of [entryPoints(root), threadEntries(dist)]) await bundle(entries, dist, made)
  for (const file of listScripts(dist)) {
    if (isKept(file)) minify(join(dist, file))
    else rmSync(join(dist, file))
  }
  for (const file of listScripts(made)) {
    mkdirSync(dirname(join(dist, file)), { recursive: true })
    renameSync(join(made, file), join(dist, file))
  }
  rmSync(made, { recursive: true })
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await bundlePackage(fileURLToPath(new URL('..', import.meta.url)))
