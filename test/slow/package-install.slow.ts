// A production installation of the packed package in an empty folder: its size, licences and bill of materials, and the
// messages where an optional package is missing.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { billOfMaterials } from '../../build/release.ts'
import { needsTerminals } from '../cli/in-terminal.ts'
import { PACKAGE_ENV as env, packPackage } from '../support/packed.ts'

const ROOT = join(import.meta.dirname, '../..')
const run = promisify(execFile)
const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

/** Permissive licences. */
const ALLOWED = ['0BSD', 'Apache-2.0', 'BlueOak-1.0.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT', 'Python-2.0']
/** MIT, by the text of its licence file. */
const WITHOUT_SPDX = ['limiter']

let outer: string
let bare: string
/** Has every optional package as well. */
let full: string

async function install(name: string, ...packages: string[]): Promise<string> {
  const folder = join(outer, name)
  await mkdir(folder)
  await writeFile(join(folder, 'package.json'), '{ "private": true }')
  await run('npm', ['install', '--omit=dev', '--no-audit', '--no-fund', ...packages], { cwd: folder, env })
  return folder
}

before(async () => {
  outer = await mkdtemp(join(tmpdir(), 'mcp-host-install-'))
  const tarball = await packPackage(outer)
  bare = await install('bare', tarball)
  const optional = Object.entries(peerDependencies).map(([name, range]) => `${name}@${range}`)
  full = await install('full', tarball, ...optional)
})

after(() => rm(outer, { recursive: true, force: true }))

interface Installed {
  readonly version: string
  readonly license?: string
  readonly hasInstallScript?: boolean
}

/** The packages that npm installed into a folder, by name. */
function packagesIn(folder: string): Array<readonly [name: string, Installed]> {
  const { packages } = JSON.parse(readFileSync(join(folder, 'node_modules/.package-lock.json'), 'utf8'))
  return Object.entries<Installed>(packages).map(([path, one]) => [path.replace(/.*node_modules\//, ''), one])
}

/** What it printed to either stream, and its exit code. */
async function said(folder: string, ...args: string[]) {
  const { stdout, stderr, code = 0 } = await run(process.execPath, args, { cwd: folder, env }).catch(error => error)
  return { text: `${stdout}${stderr}`, code }
}

const CLI = 'node_modules/mcp-host/dist/cli/bin.js'

/** What a message ends in: all of these packages, in the generations of package.json. */
const packages = (...names: string[]) =>
  `${names.map(name => `${name}@${/\d+/.exec(peerDependencies[name])?.[0]}`).join(' ')}\n`
const lineFor = (...names: string[]) => `run: npm i ${packages(...names)}`
/** Of what a config needs, in production too. */
const prodLineFor = (...names: string[]) => `run: npm i --save-prod ${packages(...names)}`

describe('a production installation of the package', () => {
  it('has every dependency as an installed package that npm ls lists, and prints its size', async () => {
    const { stdout } = await run('npm', ['ls', '--all', '--parseable'], { cwd: bare, env })
    for (const name of Object.keys(dependencies)) expect(stdout).to.include(join(bare, 'node_modules', name))
    const { stdout: kilobytes } = await run('du', ['-sk', '--apparent-size', join(bare, 'node_modules')])
    const megabytes = (Number.parseInt(kilobytes, 10) / 1024).toFixed(1)
    console.log(`      ${megabytes} MB in ${packagesIn(bare).length} packages`)
  })

  it('has permissive licences only, and no install script but that of esbuild, all optional packages included', () => {
    const installed = packagesIn(full).filter(([name]) => name !== 'mcp-host')
    // `(MIT OR CC0-1.0)`: one of them is enough.
    const isAllowed = (licence = '') => licence.split(/[() ]+/).some(one => ALLOWED.includes(one))
    const refused = installed.filter(([name, { license }]) => !isAllowed(license) && !WITHOUT_SPDX.includes(name))
    expect(refused).to.deep.equal([])
    const scripts = installed.filter(([, { hasInstallScript }]) => hasInstallScript).map(([name]) => name)
    expect(scripts).to.deep.equal(['esbuild'])
  })

  it('has a CycloneDX bill of materials that lists the dependencies and theirs', () => {
    const bill = JSON.parse(billOfMaterials())
    expect([bill.bomFormat, bill.metadata.component.name]).to.deep.equal(['CycloneDX', 'mcp-host'])
    const listed = bill.components.map(({ name }: { name: string }) => name)
    expect(listed).to.include.members(Object.keys(dependencies))
    expect(listed).to.have.length.above(150)
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
  ['rate-limit', { 'rate-limit': { store: 'redis', address: '10/1m' } }, REDIS, ['@redis/client']],
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

describe('missing optional packages', () => {
  for (const [index, [name, plugins, others, needs]] of PLUGINS.entries()) {
    it(`plugin ${name}: check prints the install command, which fixes the config`, async () => {
      for (const folder of [bare, full]) await writeFile(join(folder, `${name}.mjs`), configOf(plugins, others))
      // Startup reports the same problems as check, so one plugin of each package is enough.
      const isFirst = PLUGINS.findIndex(other => other[3].join() === needs.join()) === index
      for (const command of isFirst ? ['check', 'start'] : ['check']) {
        const { text, code } = await said(bare, CLI, command, '--config', `${name}.mjs`)
        expect(text)
          .to.include(name)
          .and.include(name === 'tracing' ? 'npm i --save-prod @opentelemetry/api' : prodLineFor(...needs))
        expect(code).to.equal(2)
      }
      if (!isFirst) return
      const { text, code } = await said(full, CLI, 'check', '--config', `${name}.mjs`)
      expect([code, text]).to.deep.equal([0, text])
    })
  }

  const CLIENT = '@modelcontextprotocol/client'
  it('mcp-host check --log-format pretty names pino-pretty', async () => {
    await writeFile(join(bare, 'plain.mjs'), configOf({}, {}))
    const { text, code } = await said(bare, CLI, 'check', '--config', 'plain.mjs', '--log-format', 'pretty')
    expect(text).to.include(lineFor('pino-pretty'))
    expect(code).to.be.within(1, 2)
  })

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
      .to.include('or --yes')
      .and.include(lineFor('@clack/prompts'))
    const { text } = await said(bare, CLI, 'init', 'made', '--yes')
    expect(text).to.include('Made made in made')
  })
})
