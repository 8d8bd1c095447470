// Tests the config of examples/deploy in its own processes: environment variables, trusted proxies and rejected
// secrets.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { parse, parseAllDocuments } from 'yaml'
import { bundledFile, exampleFile } from '../support/compiled.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { modernRequest } from '../support/rpc.ts'
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
  // As the example is, and with a limit that shows who is taken for whom.
  const limited = `import config from './mcp.config.ts'
    export default { ...config, plugins: { ...config.plugins, 'rate-limit': { address: '${CALLS}/1h' } } }\n`
  writeFileSync(join(folder, 'limited.config.ts'), limited)
})

const stops: (() => Promise<unknown>)[] = []
afterEach(() => Promise.all(stops.splice(0).map(stop => stop())))
after(() => rmSync(folder, { recursive: true, force: true }))

/** A verb of the CLI with an environment that has nothing else of ours. */
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
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', part => {
      said += part
    })
  const ended = once(child, 'close').then(([code]) => code as number | null)
  stops.push(() => {
    child.kill('SIGKILL')
    return ended
  })
  return { said: () => said, ended }
}

async function check(given: Environment, base: Environment = BASE) {
  const { said, ended } = run(['check'], { ...base, ...given })
  return { code: await ended, said: said() }
}

/** Returns what sends it a call: its status. */
async function start(given: Environment) {
  const port = await freePort()
  const { said } = run(['start', '--config', 'limited.config.ts'], { ...BASE, PORT: String(port), ...given })
  await eventually('it listens', said, text => /^listening on/m.test(text))
  return async (more: Environment = {}, localAddress?: string) => {
    const { headers, body } = modernRequest('tools/call', { name: 'one', arguments: {} })
    const sent = { Host: SITE, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
    const answer = await exchange(`http://127.0.0.1:${port}/mcp`, {
      method: 'POST',
      headers: { ...sent, ...(headers as Record<string, string>), ...more },
      body,
      ...(localAddress !== undefined && { localAddress }),
    })
    await answer.text()
    return answer.status
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
    for (const TRUST_PROXY of ['', '0']) {
      expect(await makeUp(await start({ TRUST_PROXY }))).to.deep.equal(LIMITED)
    }
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

  it('check rejects an invalid value', async () => {
    const wrong = ['yes', '33', '-1', '1.5']
    for (const { code, said } of await Promise.all(wrong.map(TRUST_PROXY => check({ TRUST_PROXY })))) {
      expect([code, /trustProxy/.test(said)], said).to.deep.equal([2, true])
    }
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

  it('check passes with three own secrets', async () => {
    expect(Object.keys({ ...BASE, ...own })).to.include.members(Object.keys(stringData))
    const { code, said } = await check(own)
    expect(code, said).to.equal(0)
  })

  for (const [index, [name, value]] of Object.entries<string>(stringData).entries()) {
    const command = index === 0 ? 'start' : 'check'
    it(`${command} fails, naming the secret: ${name}`, async () => {
      const { said, ended } = run([command], { ...BASE, ...own, [name]: value })
      expect(await ended, said()).to.equal(2)
      expect(said()).to.include(`${name} is still the example value`).and.not.include(value)
    })
  }

  it('check fails for an example secret in a credentials file', async () => {
    const files = join(folder, 'credentials')
    mkdirSync(files)
    writeFileSync(join(files, 'REDIS_PASSWORD'), `${stringData.REDIS_PASSWORD}\n`)
    const { code, said } = await check({ ...own, CREDENTIALS_DIRECTORY: files })
    expect([code, said.includes('REDIS_PASSWORD is still the example value')], said).to.deep.equal([2, true])
  })
})

describe('examples/deploy/mcp.config.ts without MCP_HOST_SECRETS', () => {
  const { PUBLIC_URL } = BASE

  it('check fails, naming the variable, when sessions are persistent', async () => {
    for (const MCP_HOST_SECRETS of [undefined, '', ' , ']) {
      const given = { REDIS_URL: 'redis://127.0.0.1:1', ...(MCP_HOST_SECRETS !== undefined && { MCP_HOST_SECRETS }) }
      const { code, said } = await check(given, { PUBLIC_URL })
      expect(code, said).to.equal(2)
      expect(said).to.include('openssl rand -base64 32').and.include('MCP_HOST_SECRETS').and.not.include('wrong value')
    }
  })

  it('check logs a warning when sessions are not persistent', async () => {
    const { code, said } = await check({}, { PUBLIC_URL })
    expect([code, said.includes('MCP_HOST_SECRETS')], said).to.deep.equal([0, true])
  })
})

describe('examples/deploy/mcp.config.ts with the commented login enabled', () => {
  it('rejects requests without a token', async () => {
    const text = readExample('deploy/mcp.config.ts')
    const route = /With a login: (\{.*?\}), and the plugins/.exec(text)?.[1] ?? ''
    const open = "{ toolsets: 'main' }"
    const closed = text.replace(`'/mcp': ${open}`, `'/mcp': ${route}`).replaceAll(/^( +)\/\/ ('[\w-]+': \{)/gm, '$1$2')
    writeFileSync(join(folder, 'closed.config.ts'), closed)
    const { said, ended } = run(['check', '--config', 'closed.config.ts'], BASE)
    expect(await ended, said()).to.equal(0)
    expect(said())
      .to.match(/^\/mcp .*mcp\.tools/m)
      .and.not.match(/^\/mcp .*open$/m)
    expect((await check({})).said).to.match(/^\/mcp .*open$/m)
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
      const { said } = run(['start', '--config', 'own.config.ts'], given)
      await eventually('it listens', said, text => /^listening on/m.test(text))
      expect(readdirSync(state)).to.include('mcp-host.db')
      expect([existsSync(join(folder, 'state')), readdirSync(credentials)]).to.deep.equal([false, ['MCP_HOST_SECRETS']])
    })
  })
}
