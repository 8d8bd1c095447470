// Tests TypeScript modules in plain Node.js: Node.js runs them if it strips types and the files allow it, otherwise tsx. Results must
// be equal. Each case uses a separate thread of one process, because the tests themselves run on tsx.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { build } from 'esbuild'
import { makeFolder, removeFolders } from './folder.ts'

const ROOT = join(import.meta.dirname, '../..')
const NODE_STRIPS = Boolean(Reflect.get(process.features, 'typescript'))

let runner: ChildProcess
before(async () => {
  const host = await makeFolder({ 'run.mjs': RUN, 'package.json': '{ "type": "module" }' })
  await symlink(join(ROOT, 'node_modules'), join(host, 'node_modules'))
  const contents = `export * from './core/config/import-module.ts'; export * from './core/config/module-graph.ts'`
  const common = { bundle: true, format: 'esm', platform: 'node', packages: 'external' } as const
  const outfile = (name: string) => join(host, 'dist/core/config', name)
  await build({ ...common, stdin: { contents, resolveDir: ROOT }, outfile: outfile('host.js') })
  await build({
    ...common,
    entryPoints: [join(ROOT, 'core/config/thread/main.ts')],
    outfile: outfile('thread/main.js'),
  })
  for (const name of ['link-only', 'throw-linked']) {
    const text = await readFile(join(ROOT, 'core/config', `${name}.ts`), 'utf8')
    await writeFile(outfile(`${name}.js`), text.replaceAll(".ts'", ".js'"))
  }
  const { NODE_OPTIONS: _, TSX_TSCONFIG_PATH: __, ...env } = process.env
  runner = fork(join(host, 'run.mjs'), { execArgv: [], env })
})
after(() => runner.kill())
after(removeFolders)

/** Runs a script with `load`, which imports a module, `host` and `folder`; `by()` returns `node`, or `tsx` once tsx is loaded. */
const RUN = `
import module from 'node:module'
import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
if (isMainThread) {
  process.on('message', workerData => {
    const worker = new Worker(new URL(import.meta.url), { workerData })
    worker.on('message', value => process.send({ value })).on('error', ({ stack }) => process.send({ stack }))
  })
} else parentPort.postMessage(await run(workerData))

async function run({ folder, script }) {
let by = module.registerHooks ? 'node' : 'tsx'
module.registerHooks?.({ resolve(name, context, next) {
  const found = next(name, context)
  if (/\\/node_modules\\/tsx\\//.test(found.url)) by = 'tsx'
  return found
} })
const host = await import('./dist/core/config/host.js')
const load = name => host.importModule(join(folder, name))
const write = (name, text) => writeFileSync(join(folder, name), text)
const AsyncFunction = (async () => undefined).constructor
const run = new AsyncFunction('load', 'write', 'host', 'folder', 'by', 'pathToFileURL', script)
return run(load, write, host, folder, () => by, pathToFileURL)
}
`

async function run(files: Record<string, string>, script: string): Promise<unknown> {
  runner.send({ folder: await makeFolder(files), script })
  const [{ value, stack }] = await once(runner, 'message')
  expect(stack).to.equal(undefined)
  return value
}

const defaultOf = (files: Record<string, string>) =>
  `return [(await load('${'main.mts' in files ? 'main.mts' : 'main.ts'}')).default, by()]`
const tsconfig = (compilerOptions: object, others: object = {}) => ({
  'tsconfig.json': JSON.stringify({ compilerOptions, ...others }),
})

describe('TypeScript that Node.js runs if it strips types', () => {
  const cases: ReadonlyArray<readonly [what: string, files: Record<string, string>, value: unknown]> = [
    [
      'types, interfaces, generics and `satisfies`',
      {
        'main.ts': `import { type Two, two } from './two.ts'
interface Sum { readonly sum: number }
const add = <T extends Two>(one: number, other: T): Sum => ({ sum: one + (other as number) } satisfies Sum)
export default add(1, two!)`,
        'two.ts': 'export type Two = number\nexport const two: Two = 2',
        ...tsconfig({ target: 'es2023', module: 'nodenext', verbatimModuleSyntax: true }),
      },
      { sum: 3 },
    ],
    [
      'a class with a declared field, in JavaScript semantics',
      { 'main.ts': 'class A { a?: number }\nexport default Object.keys(new A())', ...tsconfig({ target: 'ESNext' }) },
      ['a'],
    ],
    [
      'a tsconfig.json with comments and a trailing comma',
      { 'main.ts': 'export default 1 as number', 'tsconfig.json': '{ /* a */ "compilerOptions": {}, // b\n}' },
      1,
    ],
    [
      'an .mts file in a package without "type": "module", and JSON with an import attribute',
      {
        'package.json': '{}',
        'main.mts': "import data from './data.json' with { type: 'json' }\nexport default data.one as number",
        'data.json': '{"one":1}',
      },
      1,
    ],
  ]
  for (const [what, files, value] of cases) {
    it(`includes ${what}`, async () => {
      expect(await run(files, defaultOf(files))).to.deep.equal([value, NODE_STRIPS ? 'node' : 'tsx'])
    })
  }
})

describe('TypeScript that tsx runs', () => {
  const imports = (name: string) => ({ 'main.ts': `import { value } from '${name}'\nexport default value as number` })
  const VALUE = 'export const value: number = 1'
  const cases: ReadonlyArray<readonly [what: string, files: Record<string, string>, value?: unknown]> = [
    ['an enum', { 'main.ts': 'enum E { A = 1 }\nexport default E.A' }],
    [
      'a decorator',
      {
        'main.ts': `const one = (_: unknown, context: ClassDecoratorContext) => void context.addInitializer(function (this: unknown) { Object(this).a = 1 })
@one class A { static a?: number }
export default A.a`,
      },
    ],
    [
      'an enum in an indirectly imported module',
      { ...imports('./one.ts'), 'one.ts': `import './two.ts'\n${VALUE}`, 'two.ts': 'enum E { A }' },
    ],
    ['an import without extension', { ...imports('./one'), 'one.ts': VALUE }],
    ['a .js file next to a .ts file', { ...imports('./one.js'), 'one.ts': VALUE, 'one.js': 'export const value = 2' }],
    ['TypeScript with JSX', { ...imports('./one.tsx'), 'one.tsx': VALUE }],
    [
      'CommonJS because of its package.json',
      { 'package.json': '{}', 'main.ts': 'export default typeof require === "function" ? 1 : 2' },
    ],
    [
      'an .mts file that imports CommonJS',
      { 'package.json': '{}', 'main.mts': "import { value } from './one.cts'\nexport default value", 'one.cts': VALUE },
    ],
    ['a dynamic import', { 'main.ts': "export default (await import('./one')).value as number", 'one.ts': VALUE }],
    [
      'TypeScript in a package',
      {
        ...imports('pack'),
        'node_modules/pack/package.json': '{"type":"module","exports":"./one.ts"}',
        'node_modules/pack/one.ts': VALUE,
      },
    ],
    [
      '`paths`',
      {
        ...imports('lib'),
        ...tsconfig({ paths: { lib: ['./one.ts'] } }),
        'one.ts': VALUE,
        'node_modules/lib/package.json': '{"type":"module","exports":"./lib.js"}',
        'node_modules/lib/lib.js': 'export const value = 2',
      },
    ],
    [
      '`extends`',
      {
        ...imports('lib'),
        ...tsconfig({}, { extends: './base.json' }),
        'base.json': JSON.stringify({ compilerOptions: { paths: { lib: ['./one.ts'] } } }),
        'one.ts': VALUE,
      },
    ],
    [
      'class fields with an old target',
      {
        'main.ts': 'class A { constructor() { this.set() } set() { this.a = 1 } a?: number }\nexport default new A().a',
        ...tsconfig({ target: 'es2020' }),
      },
    ],
  ]
  for (const [what, files, value = 1] of cases) {
    it(`includes ${what}`, async () => {
      expect(await run(files, defaultOf(files))).to.deep.equal([value, 'tsx'])
    })
  }

  it('includes workspace packages that Node.js cannot strip', async () => {
    const shared = await makeFolder({
      'package.json': '{"name":"shared","type":"module","exports":"./one.ts"}',
      'one.ts': 'export enum E { A = 1 }',
    })
    const script = `const { symlinkSync, mkdirSync } = await import('node:fs')
mkdirSync(folder + '/node_modules'); symlinkSync(${JSON.stringify(shared)}, folder + '/node_modules/shared')
${defaultOf({})}`
    expect(await run({ 'main.ts': "import { E } from 'shared'\nexport default E.A" }, script)).to.deep.equal([1, 'tsx'])
  })
})

describe('A config that Node.js runs and a tool that tsx runs', () => {
  it('share one instance of each module, with each other and with the host', async () => {
    const files = {
      'config.ts': "export { one } from './shared.ts'",
      'shared.ts': 'export const one: object = {}',
      'tool.ts': "import { one } from './shared'\nenum E { A }\nexport { one, E }",
    }
    const script = `const before = ${NODE_STRIPS} && (await import(pathToFileURL(folder + '/shared.ts').href))
const [config, tool] = await Promise.all([load('config.ts'), load('tool.ts')])
return [config.one === tool.one, !before || before.one === tool.one, tool.E.A, by()]`
    expect(await run(files, script)).to.deep.equal([true, true, 0, 'tsx'])
  })

  it('run each module once, even if Node.js cannot link one of them', async () => {
    const files = {
      'main.ts': "import './one.ts'\nimport { T } from './two.ts'\nexport default Reflect.get(globalThis, 'runs') as T",
      'one.ts': "Reflect.set(globalThis, 'runs', (Reflect.get(globalThis, 'runs') ?? 0) + 1)\nexport {}",
      'two.ts': 'export type T = number',
    }
    expect(await run(files, defaultOf(files))).to.deep.equal([1, 'tsx'])
  })
})

describe('TypeScript that Node.js runs', () => {
  it('is reloaded per module after a change, by tsx if the change requires it', async () => {
    const files = {
      'main.ts':
        "import { one } from './one.ts'\nimport { still } from './still.ts'\nexport default one\nexport { still }",
      'one.ts': "export const one: string = 'one 1'",
      'still.ts': 'export const still: object = {}',
    }
    const script = `host.trackModules({ always: true })
const first = await load('main.ts')
write('one.ts', "export const one: string = 'one 2'")
await host.refreshModules(folder + '/main.ts')
const second = await load('main.ts')
const was = by()
write('one.ts', "enum E { A }\\nexport const one: string = 'one 3' + E.A")
await host.refreshModules(folder + '/main.ts')
const third = await load('main.ts')
const same = first.still === second.still && first.still === third.still
return [first.default, second.default, was, third.default, by(), same]`
    const expected = ['one 1', 'one 2', NODE_STRIPS ? 'node' : 'tsx', 'one 30', 'tsx', true]
    expect(await run(files, script)).to.deep.equal(expected)
  })

  it('keeps its line numbers in stack traces', async () => {
    const files = {
      'main.ts': 'interface A {\n  a: 1\n}\nexport default (a: A): string => String(new Error(String(a)).stack)',
    }
    const script = "const { default: fail } = await load('main.ts')\nreturn /main\\.ts\\S*:4:\\d+/.test(fail({ a: 1 }))"
    expect(await run(files, script)).to.equal(true)
  })
})
