// Tests the dependencies bundled in the packed package (build/bundle-dependencies.ts) in an installation without them.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { BUNDLED, bundledIn } from '../../build/bundle-dependencies.ts'
import { installAlone } from '../../build/measure-install.ts'
import { modern } from '../support/rpc.ts'
import { makeKey, signToken, startIssuer, stopIssuers, toJwk } from '../support/test-issuer.ts'

const ROOT = join(import.meta.dirname, '../..')
const run = promisify(execFile)
const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH']}`, NODE_OPTIONS: '' }
const CLI = 'node_modules/mcp-host/dist/cli/main.js'

let folder: string
const running = new Set<ChildProcess>()

before(async function () {
  this.timeout(180_000)
  folder = await mkdtemp(join(tmpdir(), 'mcp-host-bundled-'))
  await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: ROOT, env })
  const tarball = join(folder, (await readdir(folder)).find(name => name.endsWith('.tgz')) ?? '')
  installAlone(folder, [tarball], env)
})

after(async () => {
  for (const child of running) child.kill('SIGKILL')
  await stopIssuers()
  await rm(folder, { recursive: true, force: true })
})

/** Starts the host in a folder below, where its config is searched for; resolves with its address. */
async function start(name: string): Promise<{ url: string; stop: () => Promise<number | null> }> {
  const cwd = join(folder, name)
  const child = spawn(process.execPath, [join(folder, CLI), 'start'], {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  running.add(child)
  const ended = once(child, 'exit')
  for await (const line of createInterface(child.stdout)) {
    const [, url] = /^listening on (http:\S+)$/.exec(line) ?? []
    if (url === undefined) continue
    const stop = async () => {
      child.kill('SIGTERM')
      const [code] = await ended
      running.delete(child)
      return code
    }
    return { url, stop }
  }
  throw new Error(`the host of ${name} ended before it listened`)
}

async function write(name: string, files: Readonly<Record<string, string>>): Promise<string> {
  const path = join(folder, name)
  await mkdir(path, { recursive: true })
  for (const [file, text] of Object.entries({ 'package.json': '{ "type": "module" }', ...files })) {
    await writeFile(join(path, file), text)
  }
  return path
}

const CONFIG = {
  server: { name: 'bundled', version: '1.0.0' },
  http: { port: 0, host: '127.0.0.1' },
  toolsets: { all: [] },
  routes: { '/mcp': { toolsets: 'all' } },
  plugins: { 'transport-streamable': {} },
}

const YAML = `server: { name: bundled, version: 1.0.0 }
toolsets: { all: [] }
routes: { /mcp: { toolsets: all } }
plugins:
  transport-streamable: {}
`

describe('bundled dependencies of the package', function () {
  this.timeout(60_000)

  it('are not installed separately and are listed with their licences', () => {
    const modules = join(folder, 'node_modules')
    expect(BUNDLED.filter(name => existsSync(join(modules, name)))).to.deep.equal([])
    const own = join(modules, 'mcp-host')
    const packages = bundledIn(own)
    expect(packages.map(({ name }) => name)).to.include.members([...BUNDLED])
    const text = readFileSync(join(own, 'dist/licenses.txt'), 'utf8')
    // The licences of all but a few name who holds the copyright.
    expect(text.match(/copyright/gi)?.length).to.be.greaterThan(packages.length / 2)
    expect(readFileSync(join(ROOT, 'docs/dependencies.md'), 'utf8')).to.include(
      `Eight packages, and the ${packages.length - BUNDLED.length} that they need`,
    )
  })

  for (const name of BUNDLED) {
    it(`${name} has all exports that Node finds in the package`, async () => {
      const file = join(folder, 'node_modules/mcp-host/dist/core/packages', `${name}.js`)
      const ours = await import(pathToFileURL(file).href)
      const theirs = await import(name)
      const named = Object.keys(theirs).filter(
        key => key !== 'default' && key !== '__esModule' && key !== 'module.exports',
      )
      expect(Object.keys(ours)).to.include.members(named)
      for (const key of ['default', ...named]) expect(typeof ours[key], key).to.equal(typeof theirs[key])
    })
  }

  const CONFIGS = {
    'mcp.config.yaml': YAML,
    'mcp.config.json': JSON.stringify(CONFIG),
    'mcp.config.ts': `const config: object = ${JSON.stringify(CONFIG)}\nexport default config`,
    'mcp.config.mjs': `export default ${JSON.stringify(CONFIG)}`,
  }
  for (const [file, text] of Object.entries(CONFIGS)) {
    it(`cosmiconfig finds ${file} from a subfolder and stops at package.json`, async () => {
      const name = `search-${file.split('.').at(-1)}`
      await write(name, { [file]: text })
      const below = join(folder, name, 'a/b')
      await mkdir(below, { recursive: true })
      const found = await run(process.execPath, [join(folder, CLI), 'check'], { cwd: below, env })
      expect(found.stdout).to.include('The config is fine.')
      const own = await write(`${name}/own`, {})
      const lost = await run(process.execPath, [join(folder, CLI), 'check'], { cwd: own, env }).catch(error => error)
      expect([lost.code, lost.stderr]).to.satisfy(
        ([code, said]: [number, string]) => code === 2 && said.includes('mcp.config.ts'),
      )
    })
  }

  it('koa-body parses form, JSON and text bodies and rejects oversized ones and other charsets', async () => {
    const plugin = `import { definePlugin } from 'mcp-host'
      const options = { type: 'object', additionalProperties: false, properties: {} }
      export const echo = definePlugin({ options, setup(host) {
        for (const body of ['form', 'json', 'text'])
          host.endpoint('/' + body, { body, methods: { POST: ctx => { ctx.body = { read: ctx.request.body } } } })
      } })`
    const config = `import { echo } from './echo.mjs'
      const config = ${JSON.stringify({ ...CONFIG, http: { ...CONFIG.http, maxBodySize: '4kb' } })}
      export default { ...config, plugins: { ...config.plugins, echo: echo() } }`
    await write('bodies', { 'echo.mjs': plugin, 'mcp.config.mjs': config })
    const { url, stop } = await start('bodies')
    const send = async (path: string, type: string, body: string): Promise<unknown> => {
      const response = await fetch(new URL(path, url), { method: 'POST', headers: { 'Content-Type': type }, body })
      return response.status === 200 ? Object(await response.json())['read'] : response.status
    }
    const form = 'application/x-www-form-urlencoded'
    expect(await send('/form', form, 'a=1&b=%C3%A9')).to.deep.equal({ a: '1', b: 'é' })
    expect(await send('/json', 'application/json', '{"a":[1,"é"]}')).to.deep.equal({ a: [1, 'é'] })
    expect(await send('/text', 'text/plain', 'é')).to.equal('é')
    expect(await send('/json', 'application/json', '{')).to.equal(400)
    expect(await send('/text', 'text/plain', 'x'.repeat(5_000))).to.equal(413)
    for (const charset of ['shift_jis', 'gbk', 'big5', 'euc-kr', 'utf-16']) {
      for (const [path, type] of [
        ['/text', 'text/plain'],
        ['/json', 'application/json'],
        ['/form', form],
      ] as const) {
        expect(await send(path, `${type}; charset=${charset}`, 'a=1'), `${charset} ${path}`).to.equal(415)
      }
    }
    expect(await stop()).to.equal(0)
  })

  it('find_tools index finds tools without another package', async () => {
    const config = `import { defineTool } from 'mcp-host'
      const tool = (name, description) => defineTool({ name, description, handler: () => name })
      const all = [tool('refund_order', 'Gives money back.'), tool('list_stock', 'Lists what there is.')]
      export default { ...${JSON.stringify(CONFIG)}, toolsets: { all }, routes: { '/mcp': { toolsets: 'all', search: {} } } }`
    await write('finding', { 'mcp.config.mjs': config })
    const { url, stop } = await start('finding')
    const params = { name: 'find_tools', arguments: { query: 'refunding an order' } }
    const { message } = await modern(`${new URL('/mcp', url)}`, 'tools/call', params)
    expect(message.result.structuredContent.tools.map(({ name }: { name: string }) => name)).to.deep.equal([
      'refund_order',
    ])
    expect(await stop()).to.equal(0)
  })

  it('jwks-rsa reads issuer keys of each algorithm and jsonwebtoken verifies tokens', async () => {
    const algorithms = ['RS256', 'PS256', 'ES256', 'ES384', 'ES512']
    const keys = algorithms.map(alg => makeKey(`key-${alg}`, alg))
    const issuer = await startIssuer({ keys })
    const audience = 'https://bundled.example/mcp'
    const issuers = [{ authority: issuer.url, audience }]
    const plugins = {
      ...CONFIG.plugins,
      'auth-jwt': { issuers, algorithms },
      'resource-metadata': { authorizationServers: [issuer.url] },
    }
    await write('tokens', { 'mcp.config.json': JSON.stringify({ ...CONFIG, plugins }) })
    const { url, stop } = await start('tokens')
    const ask = async (token: string) => {
      const { status } = await modern(
        `${new URL('/mcp', url)}`,
        'server/discover',
        {},
        { headers: { Authorization: `Bearer ${token}` } },
      )
      return status
    }
    for (const key of keys) expect(await ask(signToken(issuer.claims(audience), key)), key.alg).to.equal(200)
    expect(issuer.asked).to.include('/jwks')
    for (const key of keys) {
      const stranger = { ...makeKey(key.kid, key.alg) }
      expect(toJwk(stranger)).not.to.deep.equal(toJwk(key))
      expect(await ask(signToken(issuer.claims(audience), stranger)), `${key.alg}, other key`).to.equal(401)
    }
    const [first] = keys
    if (first) expect(await ask(signToken(issuer.claims(audience, { exp: 1 }), first))).to.equal(401)
    expect(await stop()).to.equal(0)
  })
})
