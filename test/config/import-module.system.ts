// Tests loading TypeScript configs with plain Node.js, each in its own thread of a process because the tests run on tsx.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { build } from 'esbuild'

const ROOT = join(import.meta.dirname, '../..')

let folder: string
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mcp-host-import-'))
  await build({
    entryPoints: [join(ROOT, 'core/config/import-module.ts')],
    outfile: join(folder, 'package/import-module.mjs'),
    bundle: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
  })
  await write('package/run.mjs', RUN)
  await symlink(join(ROOT, 'node_modules'), join(folder, 'package/node_modules'))
  // Where the program is started: its paths are for its own files.
  await write('here/tsconfig.json', tsconfig('./wrong.ts'))
  await write('here/wrong.ts', 'export const name = "of the working directory"')
})
after(() => rm(folder, { recursive: true, force: true }))

const RUN = `
import { once } from 'node:events'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { importModule } from './import-module.mjs'
if (isMainThread) {
  const load = async file => (await once(new Worker(new URL(import.meta.url), { workerData: file }), 'message'))[0]
  console.log(JSON.stringify(await Promise.all(process.argv.slice(2).map(load))))
} else parentPort.postMessage((await importModule(workerData)).default)
`

async function write(file: string, text: string) {
  const path = join(folder, file)
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, text)
}

const tsconfig = (path: string) => JSON.stringify({ compilerOptions: { paths: { 'the-lib': [path] } } })

/** Writes a config in a folder of this kind, and returns its path. */
async function writeConfig(name: string, type: string, files: Readonly<Record<string, string>>): Promise<string> {
  await write(`${name}/package.json`, JSON.stringify({ type }))
  await write(`${name}/node_modules/the-lib/package.json`, JSON.stringify({ name: 'the-lib', main: 'index.js' }))
  await write(`${name}/node_modules/the-lib/index.js`, 'exports.name = "of the package"')
  await write(`${name}/mcp.config.ts`, "import { name } from 'the-lib'\nexport default name as string\n")
  for (const [file, text] of Object.entries(files)) await write(`${name}/${file}`, text)
  return join(folder, name, 'mcp.config.ts')
}

/** Exports of configs that are loaded from another working directory. */
async function load(...files: string[]): Promise<unknown> {
  const { TSX_TSCONFIG_PATH: _, NODE_OPTIONS: __, ...env } = process.env
  const run = [join(folder, 'package/run.mjs'), ...files]
  const { stdout } = await promisify(execFile)(process.execPath, run, { cwd: join(folder, 'here'), env })
  return JSON.parse(stdout)
}

const BROKEN = { 'tsconfig.json': JSON.stringify({ extends: 'not-installed/tsconfig.json' }) }
const OWN = { 'tsconfig.json': tsconfig('./right.ts'), 'right.ts': 'export const name: string = "of the config"' }

describe('TypeScript config outside the working directory', () => {
  for (const type of ['module', 'commonjs'] as const) {
    it(`(${type}) uses the paths of its own tsconfig, in its folder or above, and ignores any other or unreadable tsconfig`, async () => {
      for (const [file, text] of Object.entries(OWN)) await write(`${type}-above/${file}`, text)
      const configs = await Promise.all([
        writeConfig(`${type}-plain`, type, {}),
        writeConfig(`${type}-broken`, type, BROKEN),
        writeConfig(`${type}-own`, type, OWN),
        writeConfig(`${type}-above/config`, type, {}),
      ])
      const expected = ['of the package', 'of the package', 'of the config', 'of the config']
      expect(await load(...configs)).to.deep.equal(expected)
    })
  }
})
