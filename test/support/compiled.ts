// Compiles the repository, with programs of tests and with examples, for tests that start processes: a compiled file starts in half
// the time of its source under tsx. `npm run test:system` and `test:slow` preload this file, so that Mocha compiles before the first test.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { buildSync } from 'esbuild'

const ROOT = join(import.meta.dirname, '../..')
const CACHE = join(ROOT, 'node_modules/.cache/mcp-host-compiled')
/** Folders that the compiler reads. */
const SOURCES = ['build', 'core', 'plugins', 'client', 'remote', 'cli', 'examples', 'templates', 'test']
const SETTINGS = ['package.json', 'package-lock.json', 'tsconfig.json', 'test/support/compiled.tsconfig.json']
const MANIFEST = readFileSync(join(ROOT, 'package.json'), 'utf8')
/** Milliseconds after its last use before a build is removed, because another run may still use it. */
const KEPT = 60 * 60_000
/** Passes the build of a run to its workers, because sources can change during the run. */
const BUILD = 'MCP_HOST_COMPILED'
let build: string | undefined

/** Test files, and folders of tests that run, with code blocks of the documentation. */
const NOT_COMPILED = /\/blocks-|\.(?:test|system|slow)\.ts$/

/** Changes when a file is added, removed or written. */
function digestSources(): string {
  const files = SOURCES.flatMap(folder =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter(file => (/\.(?:tsx?|css)$/.test(file) || folder === 'templates') && !NOT_COMPILED.test(file))
      .map(file => join(folder, file)),
  )
  const hash = createHash('sha256')
  for (const file of [...SETTINGS, ...files.sort()]) {
    const { mtimeMs, size } = statSync(join(ROOT, file))
    hash.update(`${file} ${mtimeMs} ${size}\n`)
  }
  return hash.digest('hex').slice(0, 16)
}

/** Files that tests start or that their configs import. One bundle, so that they share module instances. */
const ENTRIES = [
  'cli/bin.ts',
  'cli/workers/thread/main.ts',
  'core/auth.ts',
  'core/config/thread/main.ts',
  'core/index.ts',
  'core/testing.ts',
  'plugins/apps/define-app.ts',
  'plugins/isolate/process/main.ts',
  'plugins/isolate/thread/main.ts',
  'plugins/openapi/thread/main.ts',
  'plugins/store-sqlite/thread/main.ts',
  'test/client/node/support/cache-process.ts',
  'test/client/support/refreshing-process.ts',
  'test/cluster/chaos/load.config.ts',
  'test/cluster/scale/scale.config.ts',
  'test/cluster/support/bridge.config.ts',
  'test/cluster/support/changes.config.ts',
  'test/cluster/support/journey.config.ts',
  'test/cluster/support/tasks.config.ts',
  'test/cluster/support/upstream.config.ts',
  'test/conformance/client.ts',
  'test/conformance/mcp.config.ts',
  'test/conformance/skills.config.ts',
  'test/conformance/tasks.config.ts',
  'test/deploy/support/whose-node.ts',
  'test/fixtures/asking-host.ts',
  'test/hostile/attacked.config.ts',
  'test/isolated/tools.ts',
  'test/plugins/store-sqlite/support/tasking-process.ts',
  'test/plugins/store-sqlite/support/writing-process.ts',
  'test/sqlite/chaos/load.config.ts',
  'test/sqlite/power.config.ts',
  'test/sqlite/support/store-program.ts',
  'test/support/crash-host.ts',
] as const
/** Files of the package that examples import. */
const PUBLIC = MANIFEST.match(/(?<="\.\/dist\/)[^"]+\.js/g) ?? []
export type BundledFile = (typeof ENTRIES)[number]
/** Packages that stay external: bundled CommonJS loses named exports, and tsx finds its files by path. */
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
  'jsonc-parser',
  'tinypool',
]

/** Bundles entries and dependencies into few files, which halves the startup time of a process. */
function bundle(dist: string, outdir: string): void {
  buildSync({
    entryPoints: [...new Set([...ENTRIES.map(toJs), ...PUBLIC])].map(file => join(dist, file)),
    outbase: dist,
    outdir,
    bundle: true,
    splitting: true,
    // Two folders down, as in the package, because worker threads are located relative to this folder.
    chunkNames: 'core/chunks/[name]-[hash]',
    format: 'esm',
    platform: 'node',
    target: 'node20',
    keepNames: true,
    external: NOT_BUNDLED,
    logLevel: 'error',
    // For `require` calls in CommonJS dependencies.
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
  // Next to `dist`, as in the package: test configs import `mcp-host`, and the CLI reads its version.
  mkdirSync(made, { recursive: true })
  writeFileSync(join(made, 'package.json'), MANIFEST)
  // Examples ship as TypeScript and import `mcp-host`. It must resolve to this folder, so the tsconfig.json has no `paths`.
  cpSync(join(ROOT, 'examples'), join(made, 'examples'), { recursive: true })
  // `init` and `add` look for templates next to the package.json.
  cpSync(join(ROOT, 'templates'), join(made, 'templates'), { recursive: true })
  writeFileSync(join(made, 'tsconfig.json'), '{}\n')
  // `npm run types` checks the types.
  const dist = join(made, 'dist')
  run(join(ROOT, 'node_modules/.bin/tsc'), '-p', join(import.meta.dirname, 'compiled.tsconfig.json'), '--outDir', dist)
  run(process.execPath, join(dist, 'build/write-validators.js'), dist)
  run(join(ROOT, 'node_modules/.bin/tsx'), join(ROOT, 'build/bundle-console.ts'), relative(ROOT, dist))
  bundle(dist, join(made, 'bundle'))
  writeFileSync(join(made, 'package.json'), MANIFEST.replaceAll('./dist/', './bundle/'))
  try {
    renameSync(made, folder)
  } catch (error) {
    // Another run compiled the same sources first.
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

/** Returns the folder of the build of the current sources. */
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

/** The compiled file of a source file; `file` is relative to the repository root. */
export const compiledFile = (file: string): string => join(findBuild(), 'dist', toJs(file))

/** The same as a URL, for an `import` in a config. */
export const compiledUrl = (file: string): string => pathToFileURL(compiledFile(file)).href

/** The file of a bundle entry. Its module instances differ from those of `compiledFile`. */
export const bundledFile = (file: BundledFile): string => join(findBuild(), 'bundle', toJs(file))

/** An example's TypeScript file next to the compiled host, as in the package. */
export const exampleFile = (file: string): string => join(findBuild(), file)

/** Mocha calls this once per run, before its workers start. */
export function mochaGlobalSetup(): void {
  build = makeBuild()
  process.env[BUILD] = build
}
