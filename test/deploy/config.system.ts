// Tests the config of examples/deploy: environment variables, trusted proxies and rejected secrets. The config is evaluated with the
// environment of each case, and in processes of its own as in a project.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { parse, parseAllDocuments } from 'yaml'
import { type Config, defineTool } from '../../core/index.ts'
import { bundledFile, exampleFile } from '../support/compiled.ts'
import { eventually } from '../support/eventually.ts'
import { modernRequest } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { exchange } from '../support/stream-exchange.ts'
import { readExample } from './support/processes.ts'

/** How many calls an address has in the tests' window, which none of them outlives. */
const CALLS = 3
const SITE = 'mcp.acme.example'
const BASE = { MCP_HOST_SECRETS: 'a-secret-for-tests-that-is-long-enough', PUBLIC_URL: `https://${SITE}` }
type Environment = Readonly<Record<string, string>>

let folder: string
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'mcp-host-deployed-'))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(exampleFile('.'), join(folder, 'node_modules/mcp-host'), 'dir')
  mkdirSync(join(folder, 'tools'))
  const tool = `import { defineTool } from 'mcp-host'
    export default defineTool({ name: 'one', input: { type: 'object' }, handler: () => 'one' })\n`
  writeFileSync(join(folder, 'tools/one.ts'), tool)
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  cpSync(exampleFile('examples/deploy/mcp.config.ts'), join(folder, 'mcp.config.ts'))
})

const stops: (() => Promise<unknown>)[] = []
afterEach(() => Promise.all(stops.splice(0).map(stop => stop())))
afterEach(stopHosts)
after(() => rmSync(folder, { recursive: true, force: true }))

/** A command of the CLI with no other variables of this process. */
function run(args: readonly string[], given: Environment) {
  const { PATH = '', HOME = '', NODE_COMPILE_CACHE: cache } = process.env
  const child = spawn(process.execPath, [bundledFile('cli/bin.ts'), ...args], {
    cwd: folder,
    env: {
      ...{ PATH, HOME, CREDENTIALS_DIRECTORY: join(folder, 'none') },
      ...(cache !== undefined && { NODE_COMPILE_CACHE: cache }),
      ...given,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', part => {
      output += part
    })
  const ended = once(child, 'close').then(([code]) => code as number | null)
  stops.push(() => {
    child.kill('SIGKILL')
    return ended
  })
  return { output: () => output, ended }
}

let evaluated = 0

/** Evaluates the config with these variables and no others. */
async function load(given: Environment): Promise<Config> {
  const { env } = process
  process.env = { CREDENTIALS_DIRECTORY: join(folder, 'none'), ...given }
  try {
    return (await import(`../../examples/deploy/mcp.config.ts?${++evaluated}`)).default
  } finally {
    process.env = env
  }
}

const one = defineTool({ name: 'one', input: { type: 'object' }, handler: () => 'one' })

/** Starts it with one tool and a limit that shows to which address a call is counted. */
async function startWith(given: Environment) {
  const config = await load({ ...BASE, ...given })
  const plugins = { ...config.plugins, 'rate-limit': { address: `${CALLS}/1h` } }
  return startHost({ ...config, http: { ...config.http, port: 0 }, toolsets: { main: [one] }, plugins })
}

/** Returns what sends it a call and resolves with the status. */
async function start(given: Environment) {
  const { url } = await startWith(given)
  return async (more: Environment = {}, localAddress?: string) => {
    const { headers, body } = modernRequest('tools/call', { name: 'one', arguments: {} })
    const sent = { Host: SITE, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
    const response = await exchange(`${url}/mcp`, {
      method: 'POST',
      headers: { ...sent, ...(headers as Record<string, string>), ...more },
      body,
      ...(localAddress !== undefined && { localAddress }),
    })
    await response.text()
    return response.status
  }
}

type Send = Awaited<ReturnType<typeof start>>

/** One call more than an address has, each with another address made up. */
async function makeUp(send: Send, from?: string): Promise<number[]> {
  const statuses: number[] = []
  for (let count = 0; count <= CALLS; count++) {
    statuses.push(await send({ 'X-Forwarded-For': `203.0.113.${count}` }, from))
  }
  return statuses
}

const PASSED = Array.from({ length: CALLS + 1 }, () => 200)
const LIMITED = [...PASSED.slice(1), 429]

describe('examples/deploy/mcp.config.ts without TRUST_PROXY', () => {
  it('ignores X-Forwarded-For and X-Forwarded-Host, and rejects another Host', async () => {
    const send = await start({})
    expect(await makeUp(send, '127.0.0.9')).to.deep.equal(LIMITED)
    expect(await send({ 'X-Forwarded-For': '127.0.0.8' }, '127.0.0.9')).to.equal(429)
    expect(await send({}, '127.0.0.8')).to.equal(200)
    const statuses = [
      await send({ Host: 'evil.example' }),
      await send({ Host: 'evil.example', 'X-Forwarded-Host': SITE }),
      await send({ 'X-Forwarded-Host': 'evil.example' }),
    ]
    expect(statuses).to.deep.equal([403, 403, 200])
  })

  it('is the default for an empty value and 0', async () => {
    for (const given of [{}, { TRUST_PROXY: '' }, { TRUST_PROXY: '0' }])
      expect((await load(given)).http?.trustProxy).to.equal(false)
  })
})

describe('examples/deploy/mcp.config.ts with TRUST_PROXY', () => {
  it('trusts the configured number of proxies', async () => {
    const send = await start({ TRUST_PROXY: '1' })
    expect(await makeUp(send)).to.deep.equal(PASSED)
    const two = await start({ TRUST_PROXY: '2' })
    const last = async (client: string) => two({ 'X-Forwarded-For': `198.51.100.1, ${client}, 192.0.2.1` })
    const statuses: number[] = []
    for (const client of ['203.0.113.1', '203.0.113.1', '203.0.113.1', '203.0.113.1', '203.0.113.2'])
      statuses.push(await last(client))
    expect(statuses).to.deep.equal([...LIMITED, 200])
  })

  it('trusts only proxies with the configured addresses', async () => {
    const send = await start({ TRUST_PROXY: '127.0.0.5, 192.0.2.0/24' })
    expect(await makeUp(send, '127.0.0.5')).to.deep.equal(PASSED)
    expect(await makeUp(send, '127.0.0.9')).to.deep.equal(LIMITED)
  })

  it('fails for an invalid value', async () => {
    for (const TRUST_PROXY of ['yes', '33', '-1', '1.5'])
      expect(await startWith({ TRUST_PROXY }).catch(String)).to.match(/trustProxy/)
  })

  it('is set in every example file with a proxy in front, and in no other', () => {
    const { host } = parse(readExample('deploy/docker/compose.yaml')).services
    const [map] = parseAllDocuments(readExample('deploy/kubernetes/config.yaml')).map(each => each.toJS())
    expect([host.environment.TRUST_PROXY, map.data.TRUST_PROXY]).to.deep.equal([1, '1'])
    expect(readExample('deploy/systemd/mcp-host.env')).to.match(/^TRUST_PROXY=1$/m)
    for (const file of ['env.example', 'Dockerfile'])
      expect(readExample(`deploy/docker/${file}`)).to.not.include('TRUST_PROXY')
  })
})

describe('examples/deploy/mcp.config.ts with the secrets of the example', () => {
  const [, { stringData }] = parseAllDocuments(readExample('deploy/kubernetes/config.yaml')).map(each => each.toJS())
  const own = { REDIS_URL: 'redis://127.0.0.1:1', REDIS_PASSWORD: 'b'.repeat(48), METRICS_TOKEN: 'c'.repeat(48) }

  it('check passes with three own secrets, on an open route', async () => {
    expect(Object.keys({ ...BASE, ...own })).to.include.members(Object.keys(stringData))
    const { output, ended } = run(['check'], { ...BASE, ...own })
    expect(await ended, output()).to.equal(0)
    expect(output()).to.match(/^\/mcp .*open$/m)
  })

  it('start fails, naming the secret', async () => {
    const { MCP_HOST_SECRETS: value } = stringData
    const { output, ended } = run(['start'], { ...BASE, ...own, MCP_HOST_SECRETS: value })
    expect(await ended, output()).to.equal(2)
    expect(output()).to.include('MCP_HOST_SECRETS is still the example value').and.not.include(value)
  })

  for (const [name, value] of Object.entries<string>(stringData)) {
    it(`fails for an example value, also in a credentials file: ${name}`, async () => {
      const files = join(folder, `credentials-${name}`)
      mkdirSync(files)
      writeFileSync(join(files, name), `${value}\n`)
      for (const given of [{ [name]: value }, { CREDENTIALS_DIRECTORY: files }]) {
        const message = await load({ ...BASE, ...own, ...given }).then(undefined, String)
        expect(message).to.include(`${name} is still the example value`).and.not.include(value)
      }
    })
  }
})

describe('examples/deploy/mcp.config.ts without MCP_HOST_SECRETS', () => {
  const { PUBLIC_URL } = BASE

  it('fails, naming the variable, when sessions are persistent', async () => {
    for (const MCP_HOST_SECRETS of ['', ' , ']) expect((await load({ MCP_HOST_SECRETS })).secrets).to.deep.equal([])
    const config = await load({ PUBLIC_URL, REDIS_URL: 'redis://127.0.0.1:1' })
    const message = await startHost({ ...config, toolsets: { main: [one] } }).catch(String)
    expect(message).to.include('openssl rand -base64 32').and.include('MCP_HOST_SECRETS').and.not.include('wrong value')
  })

  it('logs a warning when sessions are not persistent', async () => {
    const config = await load({ PUBLIC_URL, PORT: '0' })
    const { log } = await startHost({ ...config, toolsets: { main: [one] } })
    expect(log.filter(({ level }) => level === 'warn').map(({ message }) => message)).to.match(/MCP_HOST_SECRETS/)
  })
})

describe('examples/deploy/mcp.config.ts with the commented login enabled', () => {
  it('rejects requests without a token', async () => {
    const text = readExample('deploy/mcp.config.ts')
    const route = /With a login: (\{.*?\}), and the plugins/.exec(text)?.[1] ?? ''
    const open = "{ toolsets: 'main' }"
    const closed = text.replace(`'/mcp': ${open}`, `'/mcp': ${route}`).replaceAll(/^( +)\/\/ ('[\w-]+': \{)/gm, '$1$2')
    writeFileSync(join(folder, 'closed.config.ts'), closed)
    const { output, ended } = run(['check', '--config', 'closed.config.ts'], BASE)
    expect(await ended, output()).to.equal(0)
    expect(output())
      .to.match(/^\/mcp .*mcp\.tools/m)
      .and.not.match(/^\/mcp .*open$/m)
  })
})

if (isBuiltin('node:sqlite')) {
  describe('config of mcp-host init with the two lines of examples/deploy/systemd/README.md', () => {
    it('uses the state directory and credentials of the unit and no other path', async () => {
      const [, lines = ''] = /^```ts\n(.*?)^```/ms.exec(readExample('deploy/systemd/README.md')) ?? []
      const [secrets = '', plugins = ''] = lines.trim().split('\n')
      const config = readExample('../templates/open/mcp.config.ts')
        .replace(/^ *secrets: .*/m, secrets)
        .replace(/'store-sqlite': \{.*?\},/, /'store-sqlite': \{ file: .*? \}/.exec(plugins)?.[0] ?? '')
        .replace('port: 3000', 'port: 0')
      const [credentials, state] = ['given', 'kept'].map(name => join(folder, name)) as [string, string]
      for (const made of [credentials, state]) mkdirSync(made)
      writeFileSync(join(credentials, 'MCP_HOST_SECRETS'), `${BASE.MCP_HOST_SECRETS}\n`, { mode: 0o440 })
      writeFileSync(join(folder, 'own.config.ts'), config)
      const given = { CREDENTIALS_DIRECTORY: credentials, STATE_DIRECTORY: state }
      const { output } = run(['start', '--config', 'own.config.ts'], given)
      await eventually('it listens', output, text => /^listening on/m.test(text))
      expect(readdirSync(state)).to.include('mcp-host.db')
      expect([existsSync(join(folder, 'state')), readdirSync(credentials)]).to.deep.equal([false, ['MCP_HOST_SECRETS']])
    })
  })
}
