// Tests loading of toolsets from modules and globs.
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { expectStopped } from '../fixtures/start-failure.ts'
import { modern, type RpcMessage } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)
after(removeFolders)

const CORE = JSON.stringify(new URL('../../core/index.ts', import.meta.url).href)
const IMPORT = `import { defineTool, definePrompt, defineResource } from ${CORE}\n`
const tool = (name: string) => `defineTool({ name: '${name}', handler: () => '${name}' })`
const config = (all: string | string[]) => ({ toolsets: { all }, routes: { '/': { toolsets: 'all' } } })

async function namesIn(folder: string, all: Parameters<typeof config>[0], list = 'tools') {
  const { url } = await startHost(config(all), folder)
  const { result } = (await modern(url, `${list}/list`)).message
  return result[list].map(({ name }: RpcMessage) => name)
}

describe('Toolset loading', () => {
  it('reads default, named and array exports, each definition once', async () => {
    const folder = await makeFolder({
      'default.ts': `${IMPORT}export default ${tool('d')}`,
      'named.mjs': `${IMPORT}export const one = ${tool('n1')}\nexport const two = ${tool('n2')}`,
      'array.js': `${IMPORT}export default [${tool('a1')}, ${tool('a2')}]`,
      'mixed.ts': `${IMPORT}const x: unknown = ${tool('m')}\nexport { x, x as y }\nexport default [x]\nexport const no = 1`,
      'typed.mts': `${IMPORT}type Name = 'p'\nexport const name: Name = 'p'\nexport const p = definePrompt({ name, handler: () => name })`,
    })
    expect(await namesIn(folder, './default.ts')).to.deep.equal(['d'])
    expect(await namesIn(folder, './named.mjs')).to.deep.equal(['n1', 'n2'])
    expect(await namesIn(folder, 'array.js')).to.deep.equal(['a1', 'a2'])
    expect(await namesIn(folder, './mixed.ts')).to.deep.equal(['m'])
    expect(await namesIn(folder, './typed.mts', 'prompts')).to.deep.equal(['p'])
    expect(await namesIn(folder, [`${folder}/default.ts`, './array.js'])).to.deep.equal(['a1', 'a2', 'd'])
  })

  it('reads exactly the files that a glob matches', async () => {
    const folder = await makeFolder({
      'tools/a.ts': `${IMPORT}export const a = ${tool('a')}`,
      'tools/b.ts': `${IMPORT}export const b = ${tool('b')}`,
      'tools/c.js': 'throw new Error("not to be loaded")',
      'tools/deep/d.ts': `${IMPORT}export const d = ${tool('d')}`,
    })
    expect(await namesIn(folder, './tools/*.ts')).to.deep.equal(['a', 'b'])
    expect(await namesIn(folder, 'tools/**/*.ts')).to.deep.equal(['a', 'b', 'd'])
    expect(await namesIn(folder, ['tools/{a,b}.ts', 'tools/deep/*'])).to.deep.equal(['a', 'b', 'd'])
  })

  it('combines inline definitions and modules', async () => {
    const folder = await makeFolder({ 'a.ts': `${IMPORT}export const a = ${tool('a')}` })
    const inPlace = defineTool({ name: 'in place', handler: () => '' })
    const { url } = await startHost(
      {
        toolsets: { all: ['./a.ts', inPlace], one: inPlace },
        routes: { '/': { toolsets: 'all' }, '/1': { toolsets: 'one' } },
      },
      folder,
    )
    for (const [path, expected] of [
      ['', ['a', 'in place']],
      ['/1', ['in place']],
    ] as const) {
      const { result } = (await modern(url + path, 'tools/list')).message
      expect(result.tools.map(({ name }: RpcMessage) => name)).to.deep.equal(expected)
    }
  })

  it('loads a module of two toolsets once', async () => {
    const folder = await makeFolder({
      'state.ts': 'export const state = { loads: 0 }\nstate.loads += 1',
      'a.ts': `${IMPORT}import { state } from './state.ts'\nexport const a = defineTool({ name: 'a', handler: () => state.loads++ })`,
      'b.ts': `${IMPORT}import { state } from './state.ts'\nexport const b = defineTool({ name: 'b', handler: () => state.loads })`,
    })
    const toolsets = { one: './a.ts', two: ['./b.ts'] }
    const { url } = await startHost({ toolsets, routes: { '/': { toolsets: ['one', 'two'] } } }, folder)
    const call = async (name: string) => (await modern(url, 'tools/call', { name })).message.result.content[0].text
    expect([await call('a'), await call('b')]).to.deep.equal(['1', '2'])
  })
})

describe('Toolset errors stop startup with toolset and file name', () => {
  it('for a missing file', async () => {
    const folder = await makeFolder({})
    await expectStopped(config('./gone.ts'), `toolsets.all: the file does not exist: ${folder}/gone.ts`, folder)
  })

  it('for a file that throws or has a syntax error', async () => {
    const folder = await makeFolder({
      'throws.ts': 'throw new Error("no key for the weather")',
      'broken.ts': 'export const a = {',
      'imports.mjs': "import 'nowhere-to-be-found'",
    })
    await expectStopped(
      config('throws.ts'),
      'throws.ts:1: toolsets.all cannot be loaded: no key for the weather',
      folder,
    )
    await expectStopped(config('broken.ts'), /broken\.ts:1: toolsets\.all cannot be loaded: /, folder)
    await expectStopped(
      config('imports.mjs'),
      /imports\.mjs:1: .* cannot be loaded: Cannot find package 'nowhere-to-be-found'/,
      folder,
    )
  })

  it('for a file without definitions', async () => {
    const folder = await makeFolder({ 'none.ts': 'export const tool = { name: "a", handler: () => "a" }' })
    await expectStopped(config('none.ts'), /none\.ts:1: toolsets\.all: "a"/, folder)
  })

  it('for a glob without matches', async () => {
    const folder = await makeFolder({ 'a.js': '' })
    await expectStopped(config('tools/*.ts'), `toolsets.all: no file matches tools/*.ts in ${folder}`, folder)
  })

  it('for an unknown toolset in a route, listing the known ones', async () => {
    const wrong = { toolsets: { clock: [], notes: [] }, routes: { '/': { toolsets: ['clock', 'note'] } } }
    await expectStopped(wrong, /routes\['\/'\]\.toolsets\[1\].*"note".*"notes"/)
  })
})
