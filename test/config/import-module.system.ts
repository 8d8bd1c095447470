// Tests loading TypeScript configs with plain Node.js, in a process of its own because the tests run on tsx.
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
import { importModule } from './import-module.mjs'
const { default: found } = await importModule(process.argv[2])
console.log(found)
`

async function write(file: string, text: string) {
  const path = join(folder, file)
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, text)
}

const tsconfig = (path: string) => JSON.stringify({ compilerOptions: { paths: { 'the-lib': [path] } } })

/** What a config says that lies in a folder of this kind, loaded from another working directory. */
async function load(name: string, type: 'module' | 'commonjs', files: Readonly<Record<string, string>>) {
  await write(`${name}/package.json`, JSON.stringify({ type }))
  await write(`${name}/node_modules/the-lib/package.json`, JSON.stringify({ name: 'the-lib', main: 'index.js' }))
  await write(`${name}/node_modules/the-lib/index.js`, 'exports.name = "of the package"')
  await write(`${name}/mcp.config.ts`, "import { name } from 'the-lib'\nexport default name as string\n")
  for (const [file, text] of Object.entries(files)) await write(`${name}/${file}`, text)
  const run = [join(folder, 'package/run.mjs'), join(folder, name, 'mcp.config.ts')]
  const { TSX_TSCONFIG_PATH: _, NODE_OPTIONS: __, ...env } = process.env
  const { stdout } = await promisify(execFile)(process.execPath, run, { cwd: join(folder, 'here'), env })
  return stdout.trim()
}

describe('TypeScript config outside the working directory', () => {
  for (const type of ['module', 'commonjs'] as const) {
    it(`(${type}) ignores the tsconfig of the working directory`, async () => {
      expect(await load(`${type}-plain`, type, {})).to.equal('of the package')
    })

    it(`(${type}) loads next to an unreadable tsconfig`, async () => {
      const broken = { 'tsconfig.json': JSON.stringify({ extends: 'not-installed/tsconfig.json' }) }
      expect(await load(`${type}-broken`, type, broken)).to.equal('of the package')
    })

    it(`(${type}) uses the paths of its own tsconfig, in its folder or above`, async () => {
      const right = {
        'tsconfig.json': tsconfig('./right.ts'),
        'right.ts': 'export const name: string = "of the config"',
      }
      expect(await load(`${type}-own`, type, right)).to.equal('of the config')
      await write(`${type}-above/tsconfig.json`, tsconfig('./right.ts'))
      await write(`${type}-above/right.ts`, right['right.ts'])
      expect(await load(`${type}-above/config`, type, {})).to.equal('of the config')
    })
  }
})
