// What `mcp-host init` and `add` write, in the package as a stranger gets it: every kind of project is compiled, checked
// and tested by its own scripts; a plugin is packed, installed and used. `npx mocha 'test/slow/*.slow.ts'`.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'

const ROOT = join(import.meta.dirname, '../..')
const run = promisify(execFile)
/** Children find the Node that runs the tests, and no loader of ours. */
const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH']}`, NODE_OPTIONS: '' }

let outer: string
/** Has everything installed; the other projects share its packages. */
let first: string

const tarballIn = async (folder: string, start: string) =>
  join(folder, (await readdir(folder)).find(name => name.startsWith(start) && name.endsWith('.tgz')) ?? '')

/** What it printed, to either stream, and its exit code. */
async function said(folder: string, command: string, ...args: string[]) {
  const { stdout, stderr, code = 0 } = await run(command, args, { cwd: folder, env }).catch(error => error)
  return { text: `${stdout}${stderr}`, code }
}

async function works(folder: string, command: string, ...args: string[]): Promise<string> {
  const { text, code } = await said(folder, command, ...args)
  expect(code, `${command} ${args.join(' ')}: ${text}`).to.equal(0)
  return text
}

const npm = (folder: string, ...args: string[]) => works(folder, 'npm', ...args, '--no-audit', '--no-fund')
const mcpHost = (folder: string, ...args: string[]) => works(folder, join(first, 'node_modules/.bin/mcp-host'), ...args)

/** A project that shares the packages of the first. */
async function init(name: string, ...flags: string[]): Promise<string> {
  await mcpHost(outer, 'init', name, '--yes', ...flags)
  const folder = join(outer, name)
  await mkdir(join(folder, 'node_modules'))
  for (const installed of await readdir(join(first, 'node_modules'))) {
    await symlink(join(first, 'node_modules', installed), join(folder, 'node_modules', installed))
  }
  return folder
}

async function passesItsOwnScripts(folder: string) {
  expect(await npm(folder, 'run', 'check')).to.include('The config is fine.')
  expect(await npm(folder, 'test')).to.match(/^# fail 0$|^ℹ fail 0$/m)
}

before(async function () {
  this.timeout(300_000)
  outer = await mkdtemp(join(tmpdir(), 'mcp-host-init-'))
  await npm(ROOT, 'pack', '--pack-destination', outer)
  await npm(join(ROOT, 'create'), 'pack', '--pack-destination', outer)
  // As `npm create mcp-host` finds it in the registry: both packages, side by side.
  const desk = join(outer, 'desk')
  await mkdir(desk)
  await writeFile(join(desk, 'package.json'), '{ "private": true }')
  await npm(desk, 'install', await tarballIn(outer, 'mcp-host-'), await tarballIn(outer, 'create-mcp-host-'))
  const printed = await works(outer, join(desk, 'node_modules/.bin/create-mcp-host'), 'first', '--yes')
  expect(printed).to.match(/^Made first in first:\n/)
  first = join(outer, 'first')
  // The second is what a protected project names in its package.json: those of below share the packages of this one.
  await npm(first, 'install', await tarballIn(outer, 'mcp-host-'), 'oidc-provider@9')
})

after(() => rm(outer, { recursive: true, force: true }))

describe('a project of mcp-host init', function () {
  this.timeout(120_000)

  it('passes its own check and test: in TypeScript, open, by npm create', async () => {
    await passesItsOwnScripts(first)
  })

  for (const flags of [['--format', 'yaml'], ['--protected'], ['--protected', '--format', 'yaml']]) {
    it(`passes its own check and test: ${flags.join(' ')}`, async () => {
      await passesItsOwnScripts(await init(`with${flags.join('')}`, ...flags))
    })
  }

  it('passes them with one more of everything', async () => {
    const folder = await init('more')
    for (const kind of ['tool', 'resource', 'prompt', 'plugin']) await mcpHost(folder, 'add', kind, `my-${kind}`)
    const text = await readFile(join(folder, 'mcp.config.ts'), 'utf8')
    const config = text
      .replace('\n\nexport default', "\nimport { myPlugin } from './plugins/my-plugin.ts'\n\nexport default")
      .replace('plugins: {', 'plugins: {\n    myPlugin: myPlugin({ slowAfter: 5 }),')
    await writeFile(join(folder, 'mcp.config.ts'), config)
    await passesItsOwnScripts(folder)
  })

  it('is told by the compiler and by check of what is wrong in it', async () => {
    const folder = await init('wrong')
    const text = await readFile(join(folder, 'mcp.config.ts'), 'utf8')
    await writeFile(join(folder, 'mcp.config.ts'), text.replace('health: {}', 'health: { pth: 1 }'))
    expect((await said(folder, 'npx', 'tsc')).text).to.include("'pth' does not exist")
    expect((await said(folder, 'npx', 'mcp-host', 'check')).text).to.include('did you mean "path"?')
  })
})

describe('a plugin of mcp-host init --plugin', function () {
  this.timeout(120_000)
  let folder: string
  let project: string

  before(async () => {
    folder = await init('mcp-host-audit', '--plugin')
    await works(folder, 'npx', 'tsc')
    expect(await npm(folder, 'test')).to.match(/fail 0$/m)
    await npm(folder, 'pack', '--pack-destination', outer)
    project = await init('user')
    const unpacked = join(project, 'node_modules/mcp-host-audit')
    await mkdir(unpacked)
    await works(unpacked, 'tar', '-xzf', await tarballIn(outer, 'mcp-host-audit-'), '--strip-components', '1')
  })

  it('is packed with its declarations, and without its sources and tests', async () => {
    const { text } = await said(outer, 'tar', '-tzf', await tarballIn(outer, 'mcp-host-audit-'))
    const files = text.trim().split('\n').sort()
    expect(files).to.deep.equal(
      ['README.md', 'dist/index.d.ts', 'dist/index.js', 'package.json'].map(name => `package/${name}`),
    )
  })

  it('is used by its factory in a config in TypeScript, where the compiler knows its options', async () => {
    const text = await readFile(join(project, 'mcp.config.ts'), 'utf8')
    const using = (options: string) =>
      text
        .replace('\n\nexport default', "\nimport { audit } from 'mcp-host-audit'\n\nexport default")
        .replace('plugins: {', `plugins: {\n    audit: audit(${options}),`)
    const file = join(project, 'mcp.config.ts')
    await writeFile(file, using('{ slowAfter: 5 }'))
    await npm(project, 'run', 'check')
    await writeFile(file, using('{ slowAftr: 5 }'))
    const wrongKey = await said(project, 'npx', 'tsc')
    expect([wrongKey.code === 0, wrongKey.text]).to.satisfy(
      ([ok, said]: [boolean, string]) => !ok && said.includes("'slowAftr' does not exist in type 'AuditOptions'"),
    )
    expect((await said(project, 'npx', 'mcp-host', 'check')).text).to.match(
      /mcp\.config\.ts:\d+.*slowAftr[\s\S]*slowAfter/,
    )
    await writeFile(file, using("{ slowAfter: 'long' }"))
    expect((await said(project, 'npx', 'tsc')).code).to.not.equal(0)
    await writeFile(file, text)
  })

  for (const [name, plain] of [
    ['mcp.config.yaml', (options: string) => `'mcp-host-audit': ${options}`],
    ['mcp.config.json', (options: string) => `"mcp-host-audit": ${options}`],
  ] as const) {
    it(`is used by the name of its package in ${name}, where a start checks its options`, async () => {
      const server = '"server": { "name": "u", "version": "1.0.0" }, "toolsets": { "main": "./tools/*.ts" }'
      const text = (options: string) =>
        `{ ${server}, "routes": { "/mcp": { "toolsets": "main" } }, "plugins": { "transport-streamable": {}, ${plain(options)} } }`
      const check = async (options: string) => {
        await writeFile(join(project, name), text(options))
        return said(project, 'npx', 'mcp-host', 'check', '--config', name)
      }
      expect((await check('{ "slowAfter": 5 }')).text).to.include('The config is fine.')
      expect((await check('{}')).text).to.include('The config is fine.')
      const wrong = await check('{ "slowAftr": 5 }')
      expect(wrong.code).to.equal(2)
      expect(wrong.text).to.match(/slowAftr[\s\S]*did you mean "slowAfter"/)
      expect((await check('true')).text).to.include('mcp-host-audit')
      await rm(join(project, name))
    })
  }
})

describe('the examples of the package', function () {
  this.timeout(60_000)

  it('run from where it is installed', async () => {
    for (const config of ['mcp.config.example.ts', 'examples/protected/mcp.config.ts']) {
      expect(await mcpHost(first, 'check', '--config', `node_modules/mcp-host/${config}`)).to.include(
        'The config is fine.',
      )
    }
  })
})
