// The repository as the compiler makes it for the package, tests and examples too: what tests start as processes of
// their own. It starts in half the time of the sources under tsx. Mocha has it made before the first test (.mocharc.json).
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { buildSync } from 'esbuild'

const ROOT = join(import.meta.dirname, '../..')
const CACHE = join(ROOT, 'node_modules/.cache/mcp-host-compiled')
/** What the compiler reads. */
const SOURCES = ['build', 'core', 'plugins', 'client', 'cli', 'examples', 'templates', 'test']
const SETTINGS = ['package.json', 'package-lock.json', 'tsconfig.json', 'mcp.config.example.ts']
/** Milliseconds after its last use at which a build is removed: another run may still be at it. */
const KEPT = 60 * 60_000
/** Tells the workers of a run which build is theirs: the sources may be edited meanwhile. */
const BUILD = 'MCP_HOST_COMPILED'
let build: string | undefined

/** Changes with every file that is added, removed or written. */
function digestSources(): string {
  const files = SOURCES.flatMap(folder =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter(file => file.endsWith('.ts') || folder === 'templates')
      .map(file => join(folder, file)),
  )
  const hash = createHash('sha256')
  for (const file of [...SETTINGS, ...files.sort()]) {
    const { mtimeMs, size } = statSync(join(ROOT, file))
    hash.update(`${file} ${mtimeMs} ${size}\n`)
  }
  return hash.digest('hex').slice(0, 16)
}

/** What tests start, and what their configs import: in one bundle, so that they share their modules. */
const ENTRIES = [
  'cli/bin.ts',
  'core/auth.ts',
  'core/index.ts',
  'core/isolated/thread/main.ts',
  'plugins/store-sqlite/thread/main.ts',
  'test/client/node/support/cache-process.ts',
  'test/client/support/refreshing-process.ts',
  'test/fixtures/asking-host.ts',
  'test/support/crash-host.ts',
] as const
/** What is loaded only when it is asked for stays a package: CommonJS would lose its names, and tsx finds files by paths. */
const NOT_BUNDLED = [
  'tsx',
  'esbuild',
  'cosmiconfig',
  'oidc-provider',
  'koa-body',
  '@redis/client',
  'undici',
  'jsonwebtoken',
  'jwks-rsa',
]

/** With their dependencies in few files: a process starts in half the time. */
function bundle(dist: string, outdir: string): void {
  buildSync({
    entryPoints: ENTRIES.map(file => join(dist, toJs(file))),
    outbase: dist,
    outdir,
    bundle: true,
    splitting: true,
    // Two folders down, as in the package: threads are looked for from there.
    chunkNames: 'core/chunks/[name]-[hash]',
    format: 'esm',
    platform: 'node',
    target: 'node20',
    keepNames: true,
    external: NOT_BUNDLED,
    logLevel: 'error',
    // For what dependencies in CommonJS require.
    banner: {
      js: "import { createRequire as requireAt } from 'node:module'; const require = requireAt(import.meta.url);",
    },
  })
}

const toJs = (file: string): string => file.replace(/\.ts$/, '.js')

const run = (program: string, ...args: string[]) => execFileSync(program, args, { stdio: 'inherit' })

function compile(folder: string): void {
  const started = performance.now()
  const made = `${folder}.${process.pid}`
  // Beside `dist`, as in the package: the tests' configs import `mcp-host`, and the CLI reads its version.
  mkdirSync(made, { recursive: true })
  copyFileSync(join(ROOT, 'package.json'), join(made, 'package.json'))
  // Examples are shipped as they are written, and import `mcp-host`: that of this folder, which no `paths` may hide.
  cpSync(join(ROOT, 'examples'), join(made, 'examples'), { recursive: true })
  // What `init` and `add` write, which look for them beside the package.json.
  cpSync(join(ROOT, 'templates'), join(made, 'templates'), { recursive: true })
  writeFileSync(join(made, 'tsconfig.json'), '{}\n')
  // Types are the job of `npm run types`.
  const dist = join(made, 'dist')
  const options = ['--noCheck', '--noEmit', 'false', '--rootDir', ROOT, '--outDir', dist]
  run(join(ROOT, 'node_modules/.bin/tsc'), '-p', join(ROOT, 'tsconfig.json'), ...options)
  run(process.execPath, join(dist, 'build/write-validators.js'), dist)
  bundle(dist, join(made, 'bundle'))
  try {
    renameSync(made, folder)
  } catch (error) {
    // Another run of the same sources was faster.
    if (!existsSync(folder)) throw error
    rmSync(made, { recursive: true })
  }
  console.log(`compiled in ${((performance.now() - started) / 1_000).toFixed(1)} s`)
}

function removeOld(): void {
  for (const name of readdirSync(CACHE)) {
    const folder = join(CACHE, name)
    const age = Date.now() - (statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0)
    if (age > KEPT) rmSync(folder, { recursive: true, force: true })
  }
}

/** Returns the folder of the build of the sources as they are now. */
function makeBuild(): string {
  const folder = join(CACHE, digestSources())
  if (!existsSync(folder)) compile(folder)
  utimesSync(folder, new Date(), new Date())
  removeOld()
  return folder
}

function findBuild(): string {
  build ??= process.env['MOCHA_WORKER_ID'] === undefined ? undefined : process.env[BUILD]
  build ??= makeBuild()
  return build
}

/** Where the compiled form of a source file is; `file` is its path from the repository's root. */
export const compiledFile = (file: string): string => join(findBuild(), 'dist', toJs(file))

/** The same as a URL, for an `import` in a config. */
export const compiledUrl = (file: string): string => pathToFileURL(compiledFile(file)).href

/** Where an entry point of the bundle is; its modules are not those of `compiledFile`. */
export const bundledFile = (file: (typeof ENTRIES)[number]): string => join(findBuild(), 'bundle', toJs(file))

/** Where an example's file is as the package has it, beside the compiled host: in TypeScript. */
export const exampleFile = (file: string): string => join(findBuild(), file)

/** Mocha's, once for a run, before its workers start. */
export function mochaGlobalSetup(): void {
  build = makeBuild()
  process.env[BUILD] = build
}
