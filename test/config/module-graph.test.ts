// Tests that a reload imports changed modules and their importers again and keeps all other module instances.
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { importModule } from '../../core/config/import-module.ts'
import { projectFiles, refreshModules, type trackModules } from '../../core/config/module-graph.ts'
import { installHooks } from '../../core/config/version-hooks.ts'
import { makeFolder, removeFolders } from './folder.ts'

after(removeFolders)

const SOURCES: Record<string, string> = {
  'tsconfig.json': '{ "compilerOptions": { "paths": { "@/*": ["./*"] } } }',
  'root.ts': `import { word } from './lib/word.js'
import { plain } from './lib/plain.js'
import data from './lib/data.json' with { type: 'json' }
import { still } from './lib/still.ts'
import { common } from './common/common.ts'
export const all: object = { word, plain, data, common }
export const same: object = still
export const lazy = async (): Promise<string> => (await import('./lib/late.ts')).late
`,
  'lib/word.ts': "export const word: string = 'word 1'",
  'lib/plain.js': "export const plain = 'plain 1'",
  'lib/data.json': '{"data":1}',
  'lib/still.ts': 'export const still: object = {}',
  'lib/late.ts': "export const late: string = 'late 1'",
  'common/package.json': '{}',
  'common/common.ts': "import { deep } from './deep'\nexport const common: string = 'common 1 ' + deep",
  'common/deep.ts': "export const deep: string = 'deep 1'",
}

const read = async (folder: string) => {
  const { all, same, lazy } = await importModule(join(folder, 'root.ts'))
  return { all, same, late: await (lazy as () => Promise<string>)() }
}

describe('Module reload', () => {
  it('re-imports changed TypeScript, JavaScript, JSON and CommonJS modules and their importers only', async () => {
    const folder = await makeFolder(SOURCES)
    const root = join(folder, 'root.ts')
    const write = (name: string, text: string) => writeFile(join(folder, name), text)
    await refreshModules(root)
    const first = await read(folder)
    expect(first.all).to.deep.equal({ word: 'word 1', plain: 'plain 1', data: { data: 1 }, common: 'common 1 deep 1' })

    await refreshModules(root)
    const again = await read(folder)
    expect(again.all).not.to.equal(first.all)
    expect(again.same).to.equal(first.same)

    await write('lib/word.ts', "export const word: string = 'word 2'")
    await write('lib/plain.js', "export const plain = 'plain 2'")
    await write('lib/data.json', '{"data":2}')
    await write('lib/late.ts', "export const late: string = 'late 2'")
    await write('common/deep.ts', "export const deep: string = 'deep 2'")
    await refreshModules(root)
    const second = await read(folder)
    expect(second.all).to.deep.equal({ word: 'word 2', plain: 'plain 2', data: { data: 2 }, common: 'common 1 deep 2' })
    expect(second.same).to.equal(first.same)
    expect([first.late, again.late, second.late]).to.deep.equal(['late 1', 'late 1', 'late 2'])
    const known = projectFiles()
    for (const name of Object.keys(SOURCES).filter(file => !/(tsconfig|package)\.json$/.test(file)))
      expect(known).to.include(join(folder, name))
  })

  it('records a repeated import once', async () => {
    const folder = await makeFolder({ 'package.json': '{}', 'again.mjs': 'export const again = 1' })
    const file = join(folder, 'again.mjs')
    const hooks = installHooks()
    for (let count = 0; count < 3; count++) await import(pathToFileURL(file).href)
    expect(hooks.drain().filter(one => one.file === file)).to.have.lengthOf(1)
  })

  it('re-imports a module that changed after its lazy import', async () => {
    const folder = await makeFolder({
      'root.ts': "export const lazy = async (): Promise<string> => (await import('./late.ts')).late",
      'late.ts': "export const late: string = 'late 1'",
    })
    const root = join(folder, 'root.ts')
    const lazy = async () => ((await importModule(root))['lazy'] as () => Promise<string>)()
    await refreshModules(root)
    expect(await lazy()).to.equal('late 1')
    await writeFile(join(folder, 'late.ts'), "export const late: string = 'late 2'")
    await refreshModules(root)
    expect(await lazy()).to.equal('late 2')
  })

  it('works in every copy of this package in a process', async () => {
    const folder = await makeFolder({
      'root.ts': "export { b } from './b.ts'",
      'b.ts': "export const b: string = 'b 1'",
    })
    const [root, b] = [join(folder, 'root.ts'), join(folder, 'b.ts')]
    await refreshModules(root)
    const copy = (await import(new URL('../../core/config/module-graph.ts?copy', import.meta.url).href)) as {
      projectFiles: typeof projectFiles
      trackModules: typeof trackModules
    }
    copy.trackModules({ always: true })
    expect(await importModule(root)).to.include({ b: 'b 1' })
    await writeFile(b, "export const b: string = 'b 2'")
    await refreshModules(root)
    expect(await importModule(root)).to.include({ b: 'b 2' })
    expect(copy.projectFiles()).to.include(b)
  })

  it('re-imports a failed module after its missing dependency is added', async () => {
    const folder = await makeFolder({ 'root.ts': "import { b } from './b.ts'\nexport const all: string = b" })
    const root = join(folder, 'root.ts')
    const failed = await importModule(root).catch((error: unknown) => error)
    expect(failed).to.be.an('error')
    await writeFile(join(folder, 'b.ts'), "import { c } from './c.ts'\nexport const b: string = c")
    await refreshModules(root)
    expect(await importModule(root).catch((error: unknown) => error)).to.be.an('error')
    await writeFile(join(folder, 'c.ts'), 'export const c: string = +')
    await refreshModules(root)
    expect(await importModule(root).catch((error: unknown) => error)).to.be.an('error')
    await writeFile(join(folder, 'c.ts'), "export const c: string = 'c'")
    await refreshModules(root)
    expect(await importModule(root)).to.include({ all: 'c' })
    await rm(join(folder, 'c.ts'))
    await refreshModules(root)
    expect(await importModule(root).catch((error: unknown) => error)).to.be.an('error')
  })

  it('re-imports a module that reads a changed environment variable', async () => {
    const folder = await makeFolder({
      'root.ts': "import { seen } from './seen.ts'\nimport { blind } from './blind.ts'\nexport { seen, blind }",
      'seen.ts': "export const seen: object = { seen: process.env['MODULE_GRAPH_TEST'] }",
      'blind.ts': 'export const blind: object = {}',
    })
    const root = join(folder, 'root.ts')
    await refreshModules(root)
    const { blind } = await importModule(root)
    process.env['MODULE_GRAPH_TEST'] = 'yes'
    await refreshModules(root, { environment: true })
    const second = await importModule(root)
    delete process.env['MODULE_GRAPH_TEST']
    expect(second['seen']).to.deep.equal({ seen: 'yes' })
    expect(second['blind']).to.equal(blind)
  })
})
