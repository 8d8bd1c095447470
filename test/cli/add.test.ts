// Tests `mcp-host add`: written files and printed config lines. test/slow/init.slow.ts runs the written files.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { addCommand } from '../../cli/add.ts'
import { writeNew } from '../../cli/init/write-new.ts'
import { initCommand } from '../../cli/init.ts'
import type { StartError } from '../../core/plugin.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { printedBy, testContext } from './run-command.ts'

after(removeFolders)

/** A project as `init` writes it, with a config in YAML: nothing of it has to be imported. */
async function project(): Promise<string> {
  const folder = join(await makeFolder({}), 'project')
  await printedBy(context => initCommand.run({ yes: true, format: 'yaml' }, [folder], context))
  return folder
}

/** A project with this config and nothing else. */
const withConfig = (name: string, text: string, more: Record<string, string> = {}) =>
  makeFolder({ [name]: text, ...more })

const add = (folder: string, config: string, ...words: string[]) =>
  printedBy(context => addCommand.run({ config: join(folder, config) }, words, context))

const CONFIG = (toolsets: string) =>
  `export default { server: { name: 'a', version: '1.0.0' }, toolsets: ${toolsets}, routes: {} }`

describe('mcp-host add', () => {
  for (const [kind, define] of [
    ['tool', 'defineTool'],
    ['resource', 'defineResource'],
    ['prompt', 'definePrompt'],
  ] as const) {
    it(`writes a ${kind} and its test, which the config of init serves at once`, async () => {
      const folder = await project()
      const printed = await add(folder, 'mcp.config.yaml', kind, 'get_weather')
      const read = (file: string) => readFileSync(join(folder, file), 'utf8')
      expect(read(`${kind}s/get_weather.ts`)).to.include(
        `export const getWeather = ${define}({\n  name: 'get_weather',`,
      )
      const test = read(`test/get_weather.${kind}.test.ts`)
      expect(test).to.include(`import { getWeather } from '../${kind}s/get_weather.ts'`)
      expect(`${test}${read(`${kind}s/get_weather.ts`)}`).to.not.match(/example_?name/i)
      expect(printed).to.match(/created \S+\ncreated \S+\nmcp\.config\.yaml .*$/)
    })
  }

  it('follows no link that leads out of the project', async () => {
    const folder = await project()
    const outside = join(folder, '..', 'outside')
    mkdirSync(outside)
    rmSync(join(folder, 'tools'), { recursive: true })
    symlinkSync('../outside', join(folder, 'tools'))
    symlinkSync('../nothing', join(folder, 'prompts'))
    for (const [kind, end] of [
      ['tool', outside],
      ['prompt', 'nowhere'],
    ] as const) {
      const error = await rejectionOf(add(folder, 'mcp.config.yaml', kind, 'escaped'))
      expect(String(error)).to.include(`${kind}s`).and.include(folder).and.include(end)
      expect(error).to.have.property('exitCode', 2)
    }
    expect(() => writeNew(folder, new Map([['tools/a/b.ts', '']]))).to.throw('is a link to')
    expect(readdirSync(outside)).to.deep.equal([])
    expect(existsSync(join(folder, '../nothing'))).to.equal(false)
  })

  it('follows a link that leads into the project', async () => {
    const folder = await project()
    symlinkSync(folder, `${folder}-link`)
    await add(`${folder}-link`, 'mcp.config.yaml', 'tool', 'linked')
    expect(existsSync(join(folder, 'tools/linked.ts'))).to.equal(true)
  })

  it('writes a plugin, and prints the lines that enable it, in code and in documents', async () => {
    const yaml = await project()
    expect(await add(yaml, 'mcp.config.yaml', 'plugin', 'slow-log')).to.match(
      /mcp\.config\.yaml[\s\S]*\.\/plugins\/slow-log\.ts: \{\}$/,
    )
    expect(readFileSync(join(yaml, 'plugins/slow-log.ts'), 'utf8')).to.include(
      'export const slowLog = definePlugin<SlowLogOptions,',
    )
    const code = await withConfig('mcp.config.mjs', CONFIG('{}'))
    expect(await add(code, 'mcp.config.mjs', 'plugin', 'ledger')).to.match(
      /import \{ ledger \} from '\.\/plugins\/ledger\.mjs'\n.*ledger: ledger\(\),\n.*package\.json.*\n {2}npm i -D @modelcontextprotocol\/client@2$/,
    )
    expect(readFileSync(join(code, 'plugins/ledger.mjs'), 'utf8')).to.not.include('interface')
    const json = await withConfig('mcp.config.json', '{ "toolsets": {} }', { 'package.json': '{ "type": "module" }' })
    expect(await add(json, 'mcp.config.json', 'plugin', 'ledger')).to.include('"./plugins/ledger.js": {}')
  })

  it('follows the project in language, folders and test runner', async () => {
    const folder = await withConfig('mcp.config.mjs', CONFIG("{ all: './src/tools/*.js' }"), {
      'package.json': '{ "type": "module", "devDependencies": { "vitest": "^4" } }',
    })
    expect(await add(folder, 'mcp.config.mjs', 'tool', 'one')).to.match(/mcp\.config\.mjs .*$/)
    expect(existsSync(join(folder, 'src/tools/one.js'))).to.equal(true)
    const test = readFileSync(join(folder, 'test/one.tool.test.js'), 'utf8')
    expect(test).to.include("import { test } from 'vitest'").and.include("from '../src/tools/one.js'")
  })

  it('writes ES modules as .mjs files in a CommonJS package', async () => {
    const folder = await withConfig('mcp.config.json', '{ "toolsets": {} }', {
      'package.json': '{ "type": "commonjs" }',
    })
    await add(folder, 'mcp.config.json', 'tool', 'one')
    expect(existsSync(join(folder, 'tools/one.mjs'))).to.equal(true)
    expect(existsSync(join(folder, 'test/one.tool.test.mjs'))).to.equal(true)
  })

  it('prints the config lines to add if the config is not a literal', async () => {
    const code = await withConfig('mcp.config.mjs', CONFIG("{ clock: './clock.mjs' }"))
    expect(await add(code, 'mcp.config.mjs', 'tool', 'one')).to.match(
      /mcp\.config\.mjs.*\n {2}under toolsets: {2}clock: \['\.\/clock\.mjs', '\.\/tools\/one\.mjs'\]$/,
    )
    const json = await withConfig('mcp.config.json', '{ "toolsets": {} }', { 'tsconfig.json': '{}' })
    expect(await add(json, 'mcp.config.json', 'tool', 'one')).to.match(
      /under toolsets: +"main": \["\.\/tools\/one\.ts"\]\n +in a route: +"toolsets": "main"$/,
    )
    const yaml = await withConfig('mcp.config.yaml', 'routes: {}')
    expect(await add(yaml, 'mcp.config.yaml', 'tool', 'one')).to.match(
      /under toolsets: +main: \['\.\/tools\/one\.js'\]\n +in a route: +toolsets: 'main'$/,
    )
  })

  it('overwrites no file, and writes nothing if one of the two files exists', async () => {
    const folder = await project()
    await add(folder, 'mcp.config.yaml', 'tool', 'one')
    const again = (await rejectionOf(add(folder, 'mcp.config.yaml', 'tool', 'one'))) as StartError
    expect(again.exitCode).to.equal(2)
    expect(again.message).to.match(/\n {2}test\/one\.tool\.test\.ts\n {2}tools\/one\.ts\n/)
  })

  it('keeps names with dots from being hidden files, folders above or declarations', async () => {
    const folder = await project()
    await add(folder, 'mcp.config.yaml', 'tool', '..a.d')
    expect(readFileSync(join(folder, 'tools/a-d.ts'), 'utf8')).to.include("name: '..a.d'")
  })

  it('rejects names that clients reject, unknown kinds, and names of built-in plugins', async () => {
    const folder = await project()
    for (const [words, said] of [
      [['tool', 'has space'], '"has space" is not a tool name that all clients accept: a name has 1 to 128'],
      [['tool', '../x'], 'not a tool name'],
      [['tool', ''], 'not a tool name'],
      [['prompt', 'x'.repeat(129)], 'not a prompt name'],
      [['tool', '...'], 'not a tool name'],
      [['tool', 'a\u001b[2J'], '\\u001b'],
      [
        ['tols', 'x'],
        'cannot add "tols"; give one of tool, resource, prompt, plugin, openapi, upstream; did you mean "tool"?',
      ],
      [['plugin', 'cors'], '"cors" is a built-in plugin'],
    ] as const) {
      const error = (await rejectionOf(add(folder, 'mcp.config.yaml', ...words))) as StartError
      expect(error.exitCode, said).to.equal(2)
      expect(error.message).to.include(said)
    }
  })

  it('prints how to create a project outside of one', async () => {
    const folder = await makeFolder({})
    const error = await rejectionOf(
      addCommand.run({ config: join(folder, 'mcp.config.ts') }, ['tool', 'x'], testContext()),
    )
    expect((error as StartError).exitCode).to.equal(2)
  })
})
