// Bundles the page of the operator console, a step of `npm run build`: hashed files, no inline script or style. It fails when
// a file group is larger than its budget.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build, type Metafile } from 'esbuild'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PAGE = 'plugins/console/page'

/** Maximum bytes after gzip. `first`: what the browser loads for the overview. */
const BUDGETS = { script: 60_000, first: 35_000, style: 10_000 }
type Sizes = Record<keyof typeof BUDGETS, number>

/** Packages that are bundled, with their licences in `licenses.txt`. */
const BUNDLED = ['preact', '@preact/signals', '@preact/signals-core', 'wouter-preact', 'regexparam']

/** The output files that a browser loads with this one, without lazy imports. */
function loadedWith(output: string, outputs: Metafile['outputs'], found = new Set<string>()): Set<string> {
  if (found.has(output)) return found
  found.add(output)
  for (const { path, kind } of outputs[output]?.imports ?? []) {
    if (kind === 'import-statement') loadedWith(path, outputs, found)
  }
  return found
}

const licences = (): string =>
  BUNDLED.map(name => {
    const folder = join(ROOT, 'node_modules', name)
    const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    return `${name} ${version} (${license})\n${licenceText(folder)}`
  }).join('\n---\n\n')

function licenceText(folder: string): string {
  for (const name of ['LICENSE', 'license']) {
    try {
      return readFileSync(join(folder, name), 'utf8')
    } catch {
      // The other name, or a package whose licence requires no notice.
    }
  }
  return ''
}

const createIndex = (script: string, style: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<link rel="icon" href="data:,">
<title>Operator console</title>
<link rel="stylesheet" href="/${style}">
<script type="module" src="/${script}"></script>
</head>
<body>
<noscript>The operator console requires JavaScript.</noscript>
<div id="console"></div>
</body>
</html>
`

/** Writes the page into this folder. Returns its sizes after gzip. Throws when a budget is exceeded. */
export async function bundleConsole(folder: string): Promise<Sizes> {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const {
    metafile: { outputs },
  } = await build({
    absWorkingDir: ROOT,
    entryPoints: [`${PAGE}/main.tsx`],
    outdir: folder,
    entryNames: 'assets/[name]-[hash]',
    chunkNames: 'assets/[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    tsconfigRaw: {},
    minify: true,
    metafile: true,
    legalComments: 'none',
    logLevel: 'warning',
  })
  const entry = Object.keys(outputs).find(output => outputs[output]?.entryPoint === `${PAGE}/main.tsx`) ?? ''
  const style = Object.keys(outputs).find(output => output.endsWith('.css')) ?? ''
  const gzipSize = (names: Iterable<string>): number =>
    [...names].reduce((sum, name) => sum + gzipSync(readFileSync(join(ROOT, name)), { level: 9 }).length, 0)
  const scripts = Object.keys(outputs).filter(output => output.endsWith('.js'))
  const first = loadedWith(entry, outputs)
  const sizes: Sizes = { script: gzipSize(scripts), first: gzipSize(first), style: gzipSize([style]) }
  writeFileSync(join(folder, 'index.html'), createIndex(`assets/${basename(entry)}`, `assets/${basename(style)}`))
  writeFileSync(join(folder, 'licenses.txt'), licences())
  for (const [group, max] of Object.entries(BUDGETS)) {
    const size = sizes[group as keyof Sizes]
    if (size > max) throw new Error(`Console page: ${group} has ${size} bytes after gzip, at most ${max} are allowed.`)
  }
  return sizes
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const sizes = await bundleConsole(join(ROOT, process.argv[2] ?? 'dist', PAGE))
  console.log(
    `Console page, bytes after gzip: ${Object.entries(sizes)
      .map(([group, size]) => `${group} ${size}`)
      .join(', ')}`,
  )
}
