// Tests the packed package, installed for production in an empty project (test/slow/consumer): its size, licences and bill of
// materials, plain Node.js, type declarations, entry points, and messages where an optional package is missing.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { billOfMaterials } from '../../build/release.ts'
import { needsTerminals } from '../cli/in-terminal.ts'
import { eventually } from '../support/eventually.ts'
import { PACKAGE_ENV as env, packPackage } from '../support/packed.ts'
import { readExamples } from '../support/page-examples.ts'
import { modern } from '../support/rpc.ts'

const ROOT = join(import.meta.dirname, '../..')
const run = promisify(execFile)
const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

/** Permissive licences. */
const ALLOWED = ['0BSD', 'Apache-2.0', 'BlueOak-1.0.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT', 'Python-2.0']
/** MIT, by the text of its licence file. */
const WITHOUT_SPDX = ['limiter']

let outer: string
let tarball: string
/** The project, without optional packages. */
let folder: string
/** The project with all optional packages. */
let full: string
const running = new Set<ChildProcess>()

const install = (project: string, ...packages: string[]) =>
  run('npm', ['install', '--omit=dev', '--no-audit', '--no-fund', ...packages], { cwd: project, env })

before(async function () {
  // Two installations.
  this.timeout(600_000)
  outer = await mkdtemp(join(tmpdir(), 'mcp-host-package-'))
  tarball = await packPackage(outer)
  folder = join(outer, 'bare')
  await cp(join(ROOT, 'test/slow/consumer'), folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), '{ "private": true }')
  await mkdir(join(folder, 'esm/page'))
  for (const { file, text } of readExamples('testing.md')) await writeFile(join(folder, 'esm/page', file), text)
  // TypeScript projects need the types of Node.js.
  await install(folder, tarball, '@types/node@20')
  full = join(outer, 'full')
  await run('cp', ['-a', folder, full])
  await install(full, ...Object.entries(peerDependencies).map(([name, range]) => `${name}@${range}`))
})

after(async () => {
  for (const child of running) if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
  await rm(outer, { recursive: true, force: true })
})

/** Starts a program in a process group of its own; resolves with the address that it prints. */
async function serve(command: string, args: string[], cwd: string): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(command, args, { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'inherit'] })
  running.add(child)
  child.once('exit', () => running.delete(child))
  for await (const line of createInterface(child.stdout)) {
    const [, url] = /^listening on (http:\S+)$/.exec(line) ?? []
    if (url !== undefined) return { child, url }
  }
  throw new Error(`${command} ${args.join(' ')} ended before it listened`)
}

const MOUNTED = `import Koa from 'koa'
import { definePlugin } from 'mcp-host/plugin'

const app = new Koa()
app.use(async (ctx, next) => {
  ctx.body = ctx.path
  await next()
})

export const mounted = definePlugin({
  options: { type: 'object', additionalProperties: false, properties: {} },
  setup(host) {
    host.mount('/app', app)
    host.onRequest(async (ctx, next) => {
      const path: string = ctx.path
      // @ts-expect-error: a context has a type, and paths are texts
      const wrong: number = ctx.path
      ctx.set('X-Path', path + wrong)
      await next()
    })
  },
})
`

async function expectRepeats(url: string) {
  const { message } = await modern(url, 'tools/call', { name: 'repeat', arguments: { text: 'ab', times: 2 } })
  expect(message.result.content).to.deep.equal([{ type: 'text', text: 'abab!' }])
}

describe('published package', () => {
  it('contains the compiled host, schema and docs, without tests, benchmarks and sources', async () => {
    const { stdout } = await run('tar', ['-tzf', tarball])
    const files = stdout
      .trim()
      .split('\n')
      .map(name => name.replace('package/', ''))
    expect(files).to.include.members([
      'package.json',
      'config.schema.json',
      'dist/cli/bin.js',
      'dist/core/index.d.ts',
      'dist/core/embed.js',
      'docs/dependencies.md',
      'templates/project/gitignore',
      'LICENSE',
    ])
    const unexpected = files.filter(name =>
      /^(?:test|bench|core|plugins|cli|client|coverage|create)\/|\.map$|^examples\/.*\.json$|^dist\/cli\/.*\.d\.ts$/.test(
        name,
      ),
    )
    expect(unexpected).to.deep.equal([])
  })

  it('installs no optional packages', () => {
    const names = Object.keys(peerDependencies).filter(name => name !== '@types/node')
    expect(names).to.have.length.above(5)
    expect(names.filter(name => existsSync(join(folder, 'node_modules', name)))).to.deep.equal([])
  })

  for (const config of ['esm/mcp.config.mjs', 'esm/mcp.config.json', 'esm/mcp.config.ts', 'plain/mcp.config.ts']) {
    it(`npx mcp-host start serves ${config} and exits on SIGTERM`, async () => {
      const { child, url } = await serve('npx', ['--no', 'mcp-host', 'start', '--config', config], folder)
      await expectRepeats(url)
      const ended = once(child, 'exit')
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM')
      await ended
      // npx is gone before the host, which drains; one that did not end would be waited for in vain.
      const answers = () =>
        fetch(url).then(
          () => true,
          () => false,
        )
      await eventually('the host has ended', async () => !(await answers()))
    })
  }

  it('a program embeds a host through mcp-host/host', async () => {
    const { child, url } = await serve(process.execPath, ['--import', 'tsx', 'embed.ts'], join(folder, 'esm'))
    await expectRepeats(url)
    const ended = once(child, 'exit')
    child.stdin?.end()
    expect(await ended).to.deep.equal([0, null])
  })

  it('plugins of other packages import its entry points', async () => {
    const { stdout } = await run(process.execPath, ['--import', 'tsx', 'plugins.ts'], { cwd: join(folder, 'esm'), env })
    expect(stdout.trim()).to.equal('true')
  })

  it('a program calls a server through mcp-host/client', async () => {
    const { child, url } = await serve(process.execPath, ['--import', 'tsx', 'embed.ts'], join(folder, 'esm'))
    const { stdout } = await run(process.execPath, ['--import', 'tsx', 'call.ts', url], {
      cwd: join(folder, 'esm'),
      env,
    })
    // The body has no type, and the server is open to everybody.
    expect(stdout.trim().split('\n')).to.deep.equal(['415 false', 'invalid_options'])
    child.stdin?.end()
    await once(child, 'exit')
  })

  it('compiles its declarations in strict mode with plain tsc and library check, next to a Koa application', async () => {
    await writeFile(join(folder, 'esm/mounted.ts'), MOUNTED)
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
    const { stdout } = await run(process.execPath, [tsc, '-p', folder], { env }).catch(({ stdout }) => ({ stdout }))
    expect(stdout).to.equal('')
  })
})

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

/** Returns the output of both streams, and the exit code. */
async function runNode(folder: string, ...args: string[]) {
  const { stdout, stderr, code = 0 } = await run(process.execPath, args, { cwd: folder, env }).catch(error => error)
  return { text: `${stdout}${stderr}`, code }
}

const CLI = 'node_modules/mcp-host/dist/cli/bin.js'

/** The end of an install message: the packages with their major versions in package.json. */
const packages = (...names: string[]) =>
  `${names.map(name => `${name}@${/\d+/.exec(peerDependencies[name])?.[0]}`).join(' ')}\n`
const lineFor = (...names: string[]) => `run: npm i ${packages(...names)}`
/** For packages that a config needs, also in production. */
const prodLineFor = (...names: string[]) => `run: npm i --save-prod ${packages(...names)}`

describe('a production installation of the package', () => {
  it('has every dependency in npm ls, and prints its size', async () => {
    const { stdout } = await run('npm', ['ls', '--all', '--parseable'], { cwd: folder, env })
    for (const name of Object.keys(dependencies)) expect(stdout).to.include(join(folder, 'node_modules', name))
    const { stdout: kilobytes } = await run('du', ['-sk', '--apparent-size', join(folder, 'node_modules')])
    const megabytes = (Number.parseInt(kilobytes, 10) / 1024).toFixed(1)
    console.log(`      ${megabytes} MB in ${packagesIn(folder).length} packages`)
  })

  it('has only permissive licences, and one install script (esbuild), with all optional packages', () => {
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

/** Plugins that need optional packages, in as few configs as they can share. */
const PLUGINS: ReadonlyArray<readonly [plugins: object, others: object, needs: readonly string[]]> = [
  [{ metrics: {} }, {}, ['prom-client']],
  [{ tracing: {} }, {}, ['@opentelemetry/api']],
  [{ 'dev-auth-server': {} }, { http: { host: '127.0.0.1' } }, ['oidc-provider']],
  [BRIDGE, { http: { host: '127.0.0.1' } }, ['oidc-provider']],
  [
    {
      ...{ 'rate-limit': { store: 'redis', address: '10/1m' }, 'change-bus-redis': {}, 'session-store-redis': {} },
      ...{ 'event-store-redis': {}, 'grant-store-redis': {}, 'task-store-redis': {} },
    },
    REDIS,
    ['@redis/client'],
  ],
  [{ 'cluster-redis': {} }, REDIS, ['@redis/client']],
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
  for (const [index, [plugins, others, needs]] of PLUGINS.entries()) {
    const names = Object.keys(plugins).filter(name => !['auth-jwt', 'resource-metadata'].includes(name))
    it(`${names.join(', ')}: check prints the install command, which fixes the config`, async () => {
      const config = `${index}.mjs`
      for (const project of [folder, full]) await writeFile(join(project, config), configOf(plugins, others))
      // Startup reports the same problems as check, so one config of each package is enough.
      const isFirst = PLUGINS.findIndex(other => other[2].join() === needs.join()) === index
      for (const command of isFirst ? ['check', 'start'] : ['check']) {
        const { text, code } = await runNode(folder, CLI, command, '--config', config)
        for (const name of names) expect(text).to.include(name)
        expect(text).to.include('tracing' in plugins ? 'npm i --save-prod @opentelemetry/api' : prodLineFor(...needs))
        expect(code).to.equal(2)
      }
      if (!isFirst) return
      const { text, code } = await runNode(full, CLI, 'check', '--config', config)
      expect([code, text]).to.deep.equal([0, text])
    })
  }

  const CLIENT = '@modelcontextprotocol/client'
  it('mcp-host check --log-format pretty names pino-pretty', async () => {
    await writeFile(join(folder, 'plain.mjs'), configOf({}, {}))
    const { text, code } = await runNode(folder, CLI, 'check', '--config', 'plain.mjs', '--log-format', 'pretty')
    expect(text).to.include(lineFor('pino-pretty'))
    expect(code).to.be.within(1, 2)
  })

  it('client of mcp-host/testing names the official client package', async () => {
    const program = `import { testHost } from 'mcp-host/testing'
      const host = await testHost('plain.mjs')
      await host.client().catch(error => console.log(error.message))
      await host.close()`
    await writeFile(join(folder, 'testing.mjs'), program)
    const { text } = await runNode(folder, 'testing.mjs')
    expect(text).to.include(lineFor(CLIENT))
  })

  it('mcp-host init names the prompt package and the options that avoid it', async function () {
    needsTerminals(this)
    const inTerminal = async (folder: string) => {
      const command = `${process.execPath} ${join(folder, CLI)} init new`
      const { stdout } = await run('script', ['-qec', command, '/dev/null'], {
        cwd: folder,
        env,
        timeout: 120_000,
      }).catch(error => error)
      return String(stdout).replaceAll('\r', '')
    }
    expect(await inTerminal(folder))
      .to.include('or --yes')
      .and.include(lineFor('@clack/prompts'))
    const { text } = await runNode(folder, CLI, 'init', 'made', '--yes')
    expect(text).to.include('Created made in made')
  })
})
