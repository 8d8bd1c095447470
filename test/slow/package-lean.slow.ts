// Tests the size, licences and SBOM of an installation, errors for missing optional packages, and the tables of
// docs/dependencies.md.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { bundledIn } from '../../build/bundle-dependencies.ts'
import {
  CHOICES,
  type Installed,
  installAlone,
  licenceLines,
  measure,
  sizeOf,
  wantedOf,
} from '../../build/measure-install.ts'
import { billOfMaterials } from '../../build/release.ts'
import { needsTerminals } from '../cli/in-terminal.ts'

const ROOT = join(import.meta.dirname, '../..')
const run = promisify(execFile)
const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH']}`, NODE_OPTIONS: '' }
const page = readFileSync(join(ROOT, 'docs/dependencies.md'), 'utf8')
const { peerDependencies, peerDependenciesMeta } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const OPTIONAL = Object.keys(peerDependencies)

const MEGABYTE = 2 ** 20
const MOST = { installed: 20, packages: 90, own: 4.75 }
/** Licences that ask for nothing but their text, and that what they grant is not taken back. */
const ALLOWED = ['0BSD', 'Apache-2.0', 'BlueOak-1.0.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT']

let outer: string
let tarball: string
let bare: string
let installed: Installed
/** Has every optional package as well. */
let full: string

before(async function () {
  this.timeout(180_000)
  outer = await mkdtemp(join(tmpdir(), 'mcp-host-lean-'))
  await run('npm', ['pack', '--silent', '--pack-destination', outer], { cwd: ROOT, env })
  tarball = join(outer, (await readdir(outer)).find(name => name.endsWith('.tgz')) ?? '')
  bare = join(outer, 'bare')
  installAlone(bare, [tarball], env)
  installed = measure(bare)
  full = join(outer, 'full')
  installAlone(full, [tarball, ...OPTIONAL.map(wantedOf)], env)
})

after(() => rm(outer, { recursive: true, force: true }))

const inMegabytes = (bytes: number) => Number((bytes / MEGABYTE).toFixed(1))

/** What it printed to either stream, and its exit code. */
async function said(folder: string, ...args: string[]) {
  const { stdout, stderr, code = 0 } = await run(process.execPath, args, { cwd: folder, env }).catch(error => error)
  return { text: `${stdout}${stderr}`, code }
}

const CLI = 'node_modules/mcp-host/dist/cli/main.js'

/** What a message ends in: all of these packages, in the generations of package.json. */
const packages = (...names: string[]) =>
  `${names.map(name => `${name}@${/\d+/.exec(peerDependencies[name])?.[0]}`).join(' ')}\n`
const lineFor = (...names: string[]) => `run: npm i ${packages(...names)}`
/** Of what a config needs, in production too. */
const prodLineFor = (...names: string[]) => `run: npm i --save-prod ${packages(...names)}`

describe('installation size, licences and SBOM', function () {
  this.timeout(120_000)

  it(`installs at most ${MOST.installed} MB in ${MOST.packages} packages, ${MOST.own} MB its own`, () => {
    const own = sizeOf(join(bare, 'node_modules/mcp-host'))
    const { bytes, packages } = installed
    expect(bytes).to.be.within(12 * MEGABYTE, MOST.installed * MEGABYTE)
    expect(packages.length).to.be.within(50, MOST.packages)
    expect(own).to.be.within(MEGABYTE, MOST.own * MEGABYTE)
  })

  it('docs/dependencies.md lists the sizes, also of optional packages', () => {
    const row =
      page
        .split('\n')
        .find(line => line.startsWith('| `mcp-host` |'))
        ?.split('|') ?? []
    expect(Number(row[3])).to.be.closeTo(inMegabytes(installed.bytes), 0.5)
    expect(Number(row[4])).to.be.closeTo(installed.packages.length, 3)
    for (const [what, names] of CHOICES) {
      const line = page.split('\n').find(line => line.startsWith(`| ${what} |`))
      for (const name of names) expect(line, what).to.include(`\`${name}\``)
      expect(line, what).to.match(/\| \+[\d.]+ \| \+\d+ \|$/)
    }
    expect(OPTIONAL).to.have.members([...new Set(CHOICES.flatMap(([, names]) => names))])
    expect(Object.keys(peerDependenciesMeta)).to.have.members(OPTIONAL)
  })

  it('has only allowed licences, and docs/dependencies.md lists each package', () => {
    const found = measure(full)
    const bundled = bundledIn(join(full, 'node_modules/mcp-host'))
    const strange = [...found.packages, ...bundled].filter(({ licence }) => !ALLOWED.includes(licence))
    expect(strange).to.deep.equal([])
    const under = page.slice(page.indexOf('## Licences'))
    const inUs = licenceLines({ bytes: 0, packages: bundled })
    for (const line of inUs) expect(under).to.include(line)
    // Of esbuild's programs each machine has another.
    const listed = (text: string) => text.replace(/@esbuild\/[\w-]+/, '@esbuild/...')
    for (const line of licenceLines(found)) expect(listed(page)).to.include(listed(line))
  })

  it('CycloneDX SBOM lists every package, including bundled ones', () => {
    const bill = JSON.parse(billOfMaterials(tarball))
    expect([bill.bomFormat, bill.metadata.component.name]).to.deep.equal(['CycloneDX', 'mcp-host'])
    expect(bill.specVersion).to.match(/^1\.\d$/)
    expect(bill.serialNumber).to.match(/^urn:uuid:[\da-f-]{36}$/)
    const named = new Set(bill.components.map(({ purl }: { purl: string }) => decodeURIComponent(purl)))
    const own = installed.packages.filter(({ name }) => name !== 'mcp-host')
    const bundled = bundledIn(join(bare, 'node_modules/mcp-host'))
    const missing = [...own, ...bundled].filter(({ name, version }) => !named.has(`pkg:npm/${name}@${version}`))
    expect(missing).to.deep.equal([])
    expect(bill.components.map((one: { 'bom-ref': string }) => one['bom-ref'])).to.have.length(named.size)
    for (const { 'bom-ref': ref, type, version, hashes } of bill.components) {
      expect([typeof ref, type, typeof version, hashes?.[0]?.alg]).to.deep.equal([
        'string',
        'library',
        'string',
        'SHA-512',
      ])
    }
  })
})

const REDIS = { redis: { url: 'redis://127.0.0.1:1' }, secrets: ['a-secret-that-is-long-enough-for-keys'] }
const BRIDGE = {
  'auth-bridge': { provider: { type: 'github', clientId: 'a', clientSecret: 'b' }, allow: { everyone: true } },
  'auth-jwt': {},
  'resource-metadata': {},
}

/** What a config has for each plugin that needs optional packages. */
const PLUGINS: ReadonlyArray<readonly [name: string, plugins: object, others: object, needs: readonly string[]]> = [
  ['metrics', { metrics: {} }, {}, ['prom-client']],
  ['tracing', { tracing: {} }, {}, ['@opentelemetry/api']],
  ['dev-auth-server', { 'dev-auth-server': {} }, { http: { host: '127.0.0.1' } }, ['oidc-provider']],
  ['auth-bridge', BRIDGE, { http: { host: '127.0.0.1' } }, ['oidc-provider']],
  [
    'rate-limit',
    { 'rate-limit': { store: 'redis', address: '10/1m' } },
    REDIS,
    ['@redis/client', 'rate-limiter-flexible'],
  ],
  ['cluster-redis', { 'cluster-redis': {} }, REDIS, ['@redis/client']],
  ['change-bus-redis', { 'change-bus-redis': {} }, REDIS, ['@redis/client']],
  ['session-store-redis', { 'change-bus-redis': {}, 'session-store-redis': {} }, REDIS, ['@redis/client']],
  ['event-store-redis', { 'event-store-redis': {} }, REDIS, ['@redis/client']],
  ['grant-store-redis', { 'grant-store-redis': {} }, REDIS, ['@redis/client']],
  ['task-store-redis', { 'task-store-redis': {} }, REDIS, ['@redis/client']],
]

const configOf = (plugins: object, others: object) =>
  `export default ${JSON.stringify({
    server: { name: 'lean', version: '1.0.0' },
    toolsets: { all: [] },
    routes: { '/mcp': { toolsets: 'all' } },
    ...others,
    plugins: { 'transport-streamable': {}, ...plugins },
  })}`

describe('missing optional packages', function () {
  this.timeout(60_000)

  for (const [name, plugins, others, needs] of PLUGINS) {
    it(`plugin ${name}: check and startup print the install command, which fixes the config`, async () => {
      for (const folder of [bare, full]) await writeFile(join(folder, `${name}.mjs`), configOf(plugins, others))
      for (const verb of ['check', 'start']) {
        const { text, code } = await said(bare, CLI, verb, '--config', `${name}.mjs`)
        expect(text)
          .to.include(name)
          .and.include(name === 'tracing' ? 'npm i --save-prod @opentelemetry/api' : prodLineFor(...needs))
        expect(code).to.equal(2)
      }
      const { text, code } = await said(full, CLI, 'check', '--config', `${name}.mjs`)
      expect(text).to.include('The config is fine.')
      expect(code).to.equal(0)
    })
  }

  const CLIENT = '@modelcontextprotocol/client'
  const VERBS: ReadonlyArray<readonly [args: readonly string[], needs: string]> = [
    [['list', 'http://127.0.0.1:1/mcp'], CLIENT],
    [['call', 'http://127.0.0.1:1/mcp', 'echo'], CLIENT],
    [['check', '--config', 'plain.mjs', '--log-format', 'pretty'], 'pino-pretty'],
    [['login', 'http://127.0.0.1:1/mcp', '--proxy', 'http://127.0.0.1:1'], 'undici'],
    [['proxy', 'http://127.0.0.1:1/mcp', '--proxy', 'http://127.0.0.1:1'], 'undici'],
  ]
  for (const [args, needs] of VERBS) {
    it(`mcp-host ${args[0]} ${args.find(word => word.startsWith('--log') || word === '--proxy') ?? ''} names ${needs}`, async () => {
      await writeFile(join(bare, 'plain.mjs'), configOf({}, {}))
      const { text, code } = await said(bare, CLI, ...args)
      expect(text).to.include(lineFor(needs))
      expect(code).to.be.within(1, 2)
    })
  }

  it('client of mcp-host/testing names the official client package', async () => {
    const program = `import { testHost } from 'mcp-host/testing'
      const host = await testHost('plain.mjs')
      await host.client().catch(error => console.log(error.message))
      await host.close()`
    await writeFile(join(bare, 'testing.mjs'), program)
    const { text } = await said(bare, 'testing.mjs')
    expect(text).to.include(lineFor(CLIENT))
  })

  it('mcp-host init names the prompt package and the options that avoid it', async function () {
    needsTerminals(this)
    const inTerminal = async (folder: string) => {
      const command = `${process.execPath} ${join(folder, CLI)} init new`
      const { stdout } = await run('script', ['-qec', command, '/dev/null'], {
        cwd: folder,
        env,
        timeout: 5_000,
      }).catch(error => error)
      return String(stdout).replaceAll('\r', '')
    }
    expect(await inTerminal(bare))
      .to.include('--yes asks nothing')
      .and.include(lineFor('@clack/prompts'))
    const { text } = await said(bare, CLI, 'init', 'made', '--yes')
    expect(text).to.include('Made made in made')
  })
})
