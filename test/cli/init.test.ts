// Tests `mcp-host init`: written files, rejected input and output. test/slow/init.slow.ts runs the written projects.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { expect } from 'chai'
import { packageCommandsOf, type Store, toIdentifier, toPackageName } from '../../cli/init/project-files.ts'
import { writeNew } from '../../cli/init/write-new.ts'
import { initCommand } from '../../cli/init.ts'
import { ownPackage } from '../../cli/version.ts'
import { loadConfig } from '../../core/config/load-config.ts'
import { StartError } from '../../core/plugin.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { CORE, PLUGIN, runCli, stopAll } from './in-process.ts'
import { printedBy, testContext } from './run-command.ts'
import { ROOT } from './running-command.ts'

after(stopAll)
after(removeFolders)

/** Runs `init` for a folder that is not there, in one that is; returns its path and what was printed. */
async function init(name: string, values: Record<string, unknown> = {}) {
  const folder = join(await makeFolder({}), name)
  const printed = await printedBy(context => initCommand.run({ yes: true, ...values }, [folder], context))
  return { folder, printed, read: (file: string) => readFileSync(join(folder, file), 'utf8') }
}

const filesIn = (folder: string) =>
  (readdirSync(folder, { recursive: true, encoding: 'utf8' }) as string[])
    .filter(file => file.includes('.'))
    .map(file => file.replaceAll('\\', '/'))
    .sort()

const PROJECT = [
  '.env.example',
  '.gitignore',
  'README.md',
  'package.json',
  'test/server.test.ts',
  'test/tools.test.ts',
  'tools/days_between.ts',
  'tools/server_status.ts',
  'tsconfig.json',
]

const ALL = ['ts', 'yaml'].flatMap(format =>
  (['file', 'redis', 'memory'] as const).flatMap(store =>
    [false, true].map(isProtected => [format, store, isProtected] as const),
  ),
)

const hasSqlite = isBuiltin('node:sqlite')

/** What `check` says of a new project, beside the warning that a protected one is for development. */
const EXPECTED: Readonly<Record<Store, readonly string[]>> = {
  file: hasSqlite ? [] : ['it needs the database of Node 22.13 or later'],
  redis: [],
  memory: ['Using temporary keys'],
}

/** Each file says what the store is, and nothing of the others. */
function keepsIn(store: Store, format: string, read: (file: string) => string) {
  const config = read(`mcp.config.${format}`)
  const isIn = (text: string, ...words: string[]) => words.map(word => text.includes(word))
  const isFile = store === 'file'
  const isRedis = store === 'redis'
  const plugins = isIn(config, 'store-sqlite', './state/mcp-host.db', 'cluster-redis', 'redis://127.0.0.1:6379')
  expect(plugins).to.deep.equal([isFile, isFile, isRedis, isRedis])
  expect(isIn(config, './state/secrets')).to.deep.equal([store !== 'memory'])
  // Also without a store: the next `secrets: { file }` must not be committed.
  expect(isIn(read('.gitignore'), 'state/')).to.deep.equal([true])
  const env = isIn(read('.env.example'), '# MCP_HOST_SECRETS=', 'REDIS_URL', './state/secrets')
  expect(env).to.deep.equal([true, isRedis && format === 'ts', store !== 'memory'])
  expect(isIn(read('README.md'), 'kept in `state/`', 'kept in Redis', 'sessions end')).to.deep.equal([
    isFile,
    isRedis,
    store === 'memory',
  ])
  expect(isIn(read('test/server.test.ts'), "'cluster-redis': false")).to.deep.equal([isRedis])
  for (const file of [config, read('README.md'), read('.env.example')]) expect(file).to.not.match(/\n\n\n|CONFIG/)
}

/** All that `mcp-host check` says of a project; it leaves nothing behind. */
async function findingsOf(folder: string): Promise<string[]> {
  const here = join(folder, 'node_modules/mcp-host')
  mkdirSync(here, { recursive: true })
  writeFileSync(
    join(here, 'package.json'),
    '{ "name": "mcp-host", "type": "module", "exports": { ".": "./index.js", "./plugin": "./plugin.js" } }',
  )
  writeFileSync(join(here, 'index.js'), `export * from ${JSON.stringify(CORE)}\n`)
  writeFileSync(join(here, 'plugin.js'), `export * from ${JSON.stringify(PLUGIN)}\n`)
  const { code, stdout, stderr } = await runCli(['check', '--format', 'json'], folder, { MCP_HOST_SECRETS: '' })
  const { problems = [], warnings = [] } = JSON.parse(stdout)
  expect(existsSync(join(folder, 'state'))).to.equal(false)
  expect([code, stderr]).to.deep.equal([problems.length === 0 ? 0 : 2, ''])
  return [...problems, ...warnings].map(({ text, message }) => text ?? message)
}

const write = async (folder: string, ...files: Array<[string, string]>) => writeNew(folder, new Map(files))

describe('mcp-host init', () => {
  for (const [format, store, isProtected] of ALL) {
    const what = `${format}, ${isProtected ? 'protected' : 'open'}, with sessions in ${store}`
    it(`writes a valid project with a config in ${what}, under its own name`, async () => {
      const values = { format, store, ...(isProtected && { protected: true }) }
      const { folder, read } = await init('acme-tools', values)
      const config = `mcp.config.${format}`
      expect(filesIn(folder)).to.deep.equal([...PROJECT, config].sort())
      expect(read(config)).to.include('acme-tools').and.not.include('my-server')
      expect(read(config).includes('auth-jwt')).to.equal(isProtected)
      expect(read('README.md')).to.include(`[${config}](${config})`)
      expect(read('README.md').trim().split('\n')).to.have.length.at.most(10)
      if (isProtected)
        for (const mark of ['1:', '2:', '3:']) expect(read(config)).to.match(new RegExp(`(?://|#) ${mark}`))
      const { dependencies, devDependencies, engines, scripts } = JSON.parse(read('package.json'))
      const client = store === 'redis' ? ['@redis/client'] : []
      expect(Object.keys(dependencies)).to.deep.equal([...client, 'mcp-host'])
      expect(dependencies['mcp-host']).to.equal(`^${ownPackage.version}`)
      const optional = ['@modelcontextprotocol/client', 'pino-pretty', ...(isProtected ? ['oidc-provider'] : [])]
      expect(Object.keys(devDependencies)).to.deep.equal([...optional, '@types/node', 'tsx', 'typescript'].sort())
      expect(Object.values({ ...dependencies, ...devDependencies })).to.not.include('*')
      expect(engines).to.deep.equal({ node: store === 'file' ? '>=22.13' : '>=20.19' })
      expect(Object.keys(scripts)).to.deep.equal(['dev', 'start', 'check', 'test'])
      keepsIn(store, format, read)
      const expected = [...EXPECTED[store], ...(isProtected ? ['Development authorization server enabled'] : [])]
      const found = await findingsOf(folder)
      expect(found, found.join('\n')).to.have.length(expected.length)
      for (const words of expected) expect(found.join('\n')).to.include(words)
    })
  }

  it('keeps sessions in a file if this version of Node can, or prints why not', async () => {
    const { printed, read } = await init('usual')
    expect(read('mcp.config.ts').includes('store-sqlite')).to.equal(hasSqlite)
    const said = 'Sessions are kept in memory. A file requires Node.js 22.13 or later'
    expect(printed.includes(said)).to.equal(!hasSqlite)
    const asked = await init('asked', { store: 'memory' })
    expect(asked.printed).to.not.include('22.13')
    const file = await init('file', { store: 'file' })
    expect(file.printed.includes('The session file requires Node.js 22.13 or later')).to.equal(!hasSqlite)
    const plugin = await init('mcp-host-x', { plugin: true })
    expect(plugin.printed).to.not.include('essions')
  })

  it('writes the port once, in configs that load', async () => {
    const { folder } = await init('acme', { format: 'yaml', protected: true })
    const { config } = await loadConfig({ cwd: folder })
    expect(config).to.include.keys('routes', 'plugins')
    const texts = filesIn(folder).map(file => readFileSync(join(folder, file), 'utf8'))
    expect(texts.join('\n').match(/3000/g)).to.have.length(1)
  })

  it('writes a plugin package with a peer dependency on mcp-host', async () => {
    const { folder, read } = await init('mcp-host-audit', { plugin: true })
    expect(filesIn(folder)).to.deep.equal([
      '.gitignore',
      'README.md',
      'package.json',
      'src/index.ts',
      'test/index.test.ts',
      'tsconfig.build.json',
      'tsconfig.json',
    ])
    expect(read('src/index.ts')).to.include('export const audit = definePlugin<AuditOptions,')
    expect(read('test/index.test.ts')).to.include("import { audit } from '../src/index.ts'")
    const manifest = JSON.parse(read('package.json'))
    expect(manifest.peerDependencies).to.deep.equal({ 'mcp-host': `^${ownPackage.version}` })
    expect(manifest.dependencies).to.equal(undefined)
    for (const file of filesIn(folder)) expect(read(file), file).to.not.match(/example_?name|mcp-host-example/i)
  })

  it('prints the files and the next commands, login first if the server is protected', async () => {
    const { printed } = await init("it's mine", { protected: true, name: 'mine' })
    expect(printed).to.match(/^ {2}cd \S*'[^\n]*it'\\''s mine'$/m)
    const commands = ['npm install', 'npm test', 'npm run dev', 'npx mcp-host login', 'npx mcp-host call']
    const places = commands.map(command => printed.indexOf(`\n  ${command}`))
    expect(places).to.not.include(-1)
    expect(places).to.deep.equal([...places].sort((one, other) => one - other))
  })

  it('derives a valid name from an invalid one, and prints it', async () => {
    const { printed, read } = await init('My Server!')
    expect(printed).to.match(/"My Server!".*my-server/)
    expect(JSON.parse(read('package.json')).name).to.equal('my-server')
    const scoped = await init('x', { name: '@acme/tools' })
    expect(scoped.printed).to.not.include('is not a valid npm package name')
    expect(scoped.read('mcp.config.ts')).to.include("name: 'tools'")
    const steering = await init('y', { name: '\u001b[31mred' })
    expect(steering.printed).to.include('\\u001b[31mred').and.not.include('\u001b')
  })

  it('writes next to existing files, and overwrites nothing', async () => {
    const outer = await makeFolder({ 'beside/LICENSE': 'mine', 'beside/.git/HEAD': 'x' })
    const inWay = async (files: Record<string, string>, values = {}) => {
      const folder = await makeFolder(files)
      const before = filesIn(folder)
      const error = await rejectionOf(initCommand.run({ yes: true, ...values }, [folder], testContext()))
      expect(filesIn(folder)).to.deep.equal(before)
      expect(error).to.be.instanceOf(StartError)
      return error as StartError
    }
    const { exitCode, message } = await inWay({
      'tools/days_between.ts': 'mine',
      'mcp.config.json': '{}',
      test: 'a file',
    })
    expect(exitCode).to.equal(2)
    expect(message).to.match(
      /\S+[\s\S]*mcp.config.json[\s\S]*test[\s\S]*tools\/days_between.ts\n.*init FOLDER\. To extend this project: mcp-host add tool NAME$/,
    )
    expect((await inWay({ 'package.json': '[]' })).message).to.include('is not a JSON object')
    expect((await inWay({ 'package.json': '{}' }, { plugin: true })).message).to.include('\n  package.json\n')
    const beside = join(outer, 'beside')
    await printedBy(context => initCommand.run({ yes: true }, [beside], context))
    expect(readFileSync(join(beside, 'LICENSE'), 'utf8')).to.equal('mine')
    expect(existsSync(join(beside, 'mcp.config.ts'))).to.equal(true)
    const file = await rejectionOf(initCommand.run({ yes: true }, [join(beside, 'LICENSE')], testContext()))
    expect(String(file)).to.include('is a file, not a folder')
  })

  it('adds to an existing package after it printed the change, and preserves its content', async () => {
    const own = { name: 'shop', scripts: { dev: 'vite', test: 'vitest' }, dependencies: { typescript: '1.0.0' } }
    const folder = await makeFolder({
      'package.json': `${JSON.stringify(own, null, 4)}\n`,
      '.gitignore': 'node_modules/\n',
      'README.md': 'mine',
    })
    const read = (file: string) => readFileSync(join(folder, file), 'utf8')
    const printed = await printedBy(context => initCommand.run({ yes: true, store: 'memory' }, [folder], context))
    const { name, scripts, dependencies, devDependencies } = JSON.parse(read('package.json'))
    expect([name, scripts.dev, scripts['mcp:dev']]).to.deep.equal(['shop', 'vite', 'mcp-host dev'])
    expect(dependencies).to.include.keys('mcp-host').and.include({ typescript: '1.0.0' })
    expect(devDependencies).to.include.keys('tsx').and.not.include.keys('typescript')
    expect(read('package.json')).to.match(/^ {4}"scripts"/m)
    expect(read('.gitignore')).to.equal('node_modules/\n.env\n.mcp-host/\nstate/\n')
    expect([read('README.md'), existsSync(join(folder, 'tools/days_between.ts'))]).to.deep.equal(['mine', true])
    expect(read('mcp.config.ts')).to.include("name: 'shop'")
    for (const line of ['package.json  scripts.mcp:dev: mcp-host dev', '.gitignore  state/', 'tsconfig.json  new file'])
      expect(printed).to.include(`  + ${line}\n`)
    expect(printed.indexOf('  + ')).to.be.lessThan(printed.indexOf('Created shop'))
    expect(printed).to.include('  npm run mcp:test\n  npx mcp-host dev\n')
    expect(printed).to.include(`Backup of the previous version: ${join(folder, 'package.json')}.bak`)
    // For `import` in TypeScript files of a CommonJS package.
    expect(JSON.parse(read('tsconfig.json')).compilerOptions.module).to.equal('preserve')

    const other = await makeFolder({ 'package.json': JSON.stringify(own), 'tsconfig.json': '{}' })
    const more = await printedBy(context => initCommand.run({ yes: true, store: 'memory' }, [other], context))
    expect(more).to.include('tsconfig.json is kept.')
    expect(readFileSync(join(other, 'README.md'), 'utf8')).to.match(
      /npm run mcp:dev .*npm run mcp:test .*npm run check /s,
    )
  })

  it('removes what it wrote if a file appeared meanwhile', async () => {
    const folder = await makeFolder({ 'b/two': 'mine' })
    const error = await rejectionOf(write(folder, ['a/c/one.txt', '1'], ['b/two', '2']))
    expect(error).to.be.instanceOf(StartError)
    expect(existsSync(join(folder, 'a'))).to.equal(false)
    expect(readFileSync(join(folder, 'b/two'), 'utf8')).to.equal('mine')
  })

  it('rejects flags that conflict', async () => {
    for (const [values, words] of [
      [{ plugin: true, protected: true }, '--format, --protected and --store are for servers'],
      [{ plugin: true, store: 'file' }, '--format, --protected and --store are for servers'],
    ] as const) {
      const error = await rejectionOf(initCommand.run(values, ['never-made'], testContext()))
      expect((error as StartError).exitCode).to.equal(2)
      expect(String(error)).to.include(words)
    }
  })

  it('is run by `npm create mcp-host` of the same version', () => {
    const { version, dependencies, bin, files } = JSON.parse(readFileSync(join(ROOT, 'create/package.json'), 'utf8'))
    // It asks, and mcp-host itself does not bring what asks.
    const asks = { '@clack/prompts': ownPackage.devDependencies['@clack/prompts'] }
    expect([version, dependencies]).to.deep.equal([ownPackage.version, { ...asks, 'mcp-host': ownPackage.version }])
    expect(files).to.deep.equal([bin['create-mcp-host']])
    expect(existsSync(join(ROOT, 'create', bin['create-mcp-host']))).to.equal(true)
  })

  it('prints commands of the package manager that runs it', () => {
    expect(packageCommandsOf('pnpm/10.1.0 npm/? node/v24.0.0 linux x64').execute).to.equal('pnpm exec')
    for (const agent of [undefined, '', 'cargo/1', 'npm/11'])
      expect(packageCommandsOf(agent).install).to.equal('npm install')
  })

  it('creates names that are valid in npm and JavaScript', () => {
    for (const [text, name] of [
      ['a.b_c-1', 'a.b_c-1'],
      ['Ünïcode Näme', 'unicode-name'],
      ['..', 'my-server'],
      ['日本', 'my-server'],
      ['mcp-host', 'mcp-host-server'],
      ['_x', 'x'],
      ['x'.repeat(300), 'x'.repeat(214)],
    ] as const) {
      expect(toPackageName(text, 'my-server'), text).to.equal(name)
    }
    for (const [text, identifier] of [
      ['get_weather', 'getWeather'],
      ['Get-Weather.now', 'getWeatherNow'],
      ['delete', 'deleteTool'],
      ['2fa', 'tool2fa'],
      ['_', 'tool'],
    ] as const) {
      expect(toIdentifier(text, 'tool'), text).to.equal(identifier)
    }
  })
})
