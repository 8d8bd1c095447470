// Makes few files of the many that the compiler wrote into `dist`: a start read four hundred, and half of its time went by
// in finding and linking them. The last step of `npm run build`. Types stay as they are, and so do names of functions.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'esbuild'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Every file that package.json names: what is imported from outside, and the bin. All share one instance of each module. */
function entryPoints(): string[] {
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const named: string[] = []
  JSON.stringify([manifest.exports, manifest.bin], (_key, value) => {
    if (typeof value === 'string' && value.endsWith('.js')) named.push(value)
    return value
  })
  return [...new Set(named)].map(file => join(ROOT, file))
}

const require = createRequire(import.meta.url)

/** Dependencies in CommonJS that a start imports. */
const IN_COMMONJS = [
  ...['koa', 'koa-compose', 'koa-mount', '@koa/cors', 'pino', 'negotiator', 'proxy-addr', 'fastest-levenshtein'],
  'cosmiconfig',
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

const dist = join(ROOT, 'dist')
const made = join(ROOT, 'dist.bundled')
rmSync(made, { recursive: true, force: true })
await build({
  entryPoints: entryPoints(),
  outbase: dist,
  outdir: made,
  bundle: true,
  splitting: true,
  // Below a folder of sources, where `../../` is `dist` for the files of core as it was before.
  chunkNames: 'core/chunks/[name]-[hash]',
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  packages: 'external',
  plugins: [requireCommonJs],
  logLevel: 'warning',
})
for (const file of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
  if (file.endsWith('.js')) rmSync(join(dist, file))
}
for (const file of readdirSync(made, { recursive: true, encoding: 'utf8' })) {
  if (!file.endsWith('.js')) continue
  const target = join(dist, file)
  mkdirSync(join(target, '..'), { recursive: true })
  renameSync(join(made, file), target)
}
rmSync(made, { recursive: true })
