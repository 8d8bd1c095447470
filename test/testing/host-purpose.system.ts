// Tests that hosts for tests, checks and inspection leave files and ports of the serving host alone.

import { once } from 'node:events'
import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { expect } from 'chai'
import { type Config, defineTool } from 'mcp-host'
import { definePlugin, type PluginHost } from 'mcp-host/plugin'
import { type TestHostSettings, testHost, testPlugin } from 'mcp-host/testing'
import { explainCommand } from '../../cli/explain.ts'
import { createHost, loadHost } from '../../core/create-host.ts'
import { CORE } from '../cli/run-cli.ts'
import { printedBy } from '../cli/run-command.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { modern } from '../support/rpc.ts'
import { mountSmall, unmount } from '../support/small-disk.ts'
import { createTestLog, startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)
after(removeFolders)

const TOKEN = 'a-token-long-enough-to-be-one'
const CALLED_ONCE = /^mcp_server_operation_duration_seconds_count\{.*tools\/call.*\} 1$/m
const say = defineTool({ name: 'say', handler: () => 'said' })

const configOf = (plugins: NonNullable<Config['plugins']>): Config => ({
  server: { name: 'purposes', version: '1.0.0' },
  toolsets: { all: [say] },
  routes: { '/mcp': { toolsets: 'all' } },
  plugins: { 'transport-streamable': {}, ...plugins },
})

/** A folder as its host has left it: what is in it, and each file's text, mode, time and size. */
async function pictureOf(folder: string) {
  const names = (await readdir(folder)).sort()
  const files = names.filter(name => !name.endsWith('.lock')).map(name => join(folder, name))
  const facts = await Promise.all(
    files.map(async file => {
      const { mode, mtimeMs, size, ino } = await stat(file)
      return { file, mode, mtimeMs, size, ino, text: await readFile(file, 'utf8') }
    }),
  )
  return { names, facts }
}

async function testOnce(config: Config, settings: TestHostSettings) {
  await using host = await testHost(config, settings)
  await using client = await host.client()
  expect((await client.callTool('say')).text).to.equal('said')
  return host.logged()
}

describe('Test of a config that is served at the same time', () => {
  it('touches neither files nor ports and can run several times in parallel', async () => {
    const folder = await makeFolder({})
    const metrics = { port: await freePort(), process: false }
    const config = configOf({ audit: {}, 'access-log': { file: 'access.log' }, metrics })
    const { url } = await startHost(config, folder)
    await modern(`${url}/mcp`, 'tools/call', { name: 'say', arguments: {} })
    const fileOf = (name: string) => join(folder, name)
    const written = (name: string) =>
      eventually(`the call is in ${name}`, async () => (await readFile(fileOf(name), 'utf8')).includes('"say"'))
    await Promise.all([written('audit.jsonl'), written('access.log')])
    for (const name of ['audit.jsonl', 'access.log']) await chmod(fileOf(name), 0o600)
    const before = await pictureOf(folder)

    const logs = await Promise.all([1, 2].map(() => testOnce(config, { directory: folder })))
    expect(logs.flat().filter(({ level }) => level !== 'info')).to.deep.equal([])
    expect(await pictureOf(folder)).to.deep.equal(before)
    const page = await (await fetch(`http://127.0.0.1:${metrics.port}/metrics`)).text()
    expect(page).to.match(CALLED_ONCE)
  })

  it('requires the token of the config during serving', async () => {
    const port = await freePort()
    const text = inspect({
      audit: {},
      'access-log': { file: 'access.log' },
      metrics: { port },
    })
    const folder = await makeFolder({
      'caller.mjs': `import { definePlugin } from '${CORE}'
      export default definePlugin({
        options: { type: 'object', properties: {} }, provides: ['user', 'authorize'],
        setup: host => host.authenticate((ctx, next) => {
          ctx.state.user = { subject: 'ada', scopes: [], roles: [], claims: {} }
          return next()
        }),
      })`,
      'mcp.config.mjs': `export default {
        server: { name: 'asked', version: '1.0.0' }, secrets: ['a secret for tests, long enough to be one'],
        toolsets: { all: [] }, routes: { '/': { toolsets: 'all' } },
        plugins: { 'transport-streamable': {}, './caller.mjs': {}, ...${text} },
      }`,
    })
    const taken = createServer().listen(port, '127.0.0.1')
    try {
      const config = join(folder, 'mcp.config.mjs')
      const told = await printedBy(context => explainCommand.run({ config, token: 'anything' }, [], context))
      expect(told).to.include("verified by the config's own plugins").and.include('subject ada')
      expect((await readdir(folder)).sort()).to.deep.equal(['caller.mjs', 'mcp.config.mjs', 'package.json'])
    } finally {
      taken.close()
    }
  })
})

describe('Plugins of a test host', () => {
  it('work as usual: metrics at a path can be read', async () => {
    await using host = await testHost(configOf({ metrics: { path: '/metrics', token: TOKEN, process: false } }))
    await using client = await host.client()
    await client.callTool('say')
    const answer = await fetch(`${host.url}/metrics`, { headers: { Authorization: `Bearer ${TOKEN}` } })
    expect(await answer.text()).to.match(CALLED_ONCE)
  })

  it('validate their options but do not require folders of the serving host', async () => {
    const directory = await makeFolder({})
    const missing = { audit: { file: 'gone/audit.jsonl' }, 'access-log': { file: 'gone/access.log' } }
    await testOnce(configOf(missing), { directory })
    const wrong = await testHost(configOf({ metrics: { token: 'short' } })).catch((error: Error) => error)
    expect(String(wrong)).to.include('plugins.metrics.token')
  })

  it('keep dev-auth-server logins in memory instead of files', async () => {
    const directory = await makeFolder({})
    const config = configOf({ 'dev-auth-server': { users: [{ id: 'ada' }], keepIn: 'kept.json' } })
    await testOnce(config, { directory })
    expect(await readdir(directory)).to.deep.equal(['package.json'])
    await testOnce(config, { directory, purpose: 'serve' })
    expect(await readdir(directory)).to.have.members(['kept.json', 'package.json'])
  })

  it('write files and open ports if the test sets the purpose to serve', async () => {
    const directory = await makeFolder({})
    const logs = await testOnce(configOf({ audit: {}, metrics: { port: 0, process: false } }), {
      directory,
      purpose: 'serve',
    })
    expect(await readFile(join(directory, 'audit.jsonl'), 'utf8')).to.include('"say"')
    expect(logs.map(({ message }) => message)).to.include('serving metrics')
  })
})

describe('Host purpose', () => {
  /** Keeps a file that belongs to the serving host, as a plugin of somebody else's would. */
  const ledger = definePlugin<{ file: string }>({
    options: {
      type: 'object',
      additionalProperties: false,
      properties: { file: { type: 'string' } },
      required: ['file'],
    },
    setup(host, { file }) {
      const isServing = host.config.purpose === 'serve' || host.config.purpose === 'stdio'
      if (isServing) host.onStart(() => writeFile(file, ''))
    },
  })

  it('is available to every plugin and can be set by a test', async () => {
    const folder = await makeFolder({})
    const file = join(folder, 'ledger')
    await (await testPlugin(ledger, { file })).close()
    expect(await readdir(folder)).to.deep.equal(['package.json'])
    await (await testPlugin(ledger, { file }, { purpose: 'serve' })).close()
    expect(await readdir(folder)).to.have.members(['ledger', 'package.json'])
  })

  it('defaults to serve', async () => {
    const told: PluginHost['config']['purpose'][] = []
    const curious = definePlugin({ setup: ({ config }) => void told.push(config.purpose) })
    const { host } = await startHost({ ...configOf({ curious: curious() }) })
    await host.close({ grace: 0 })
    for (const purpose of ['serve', 'stdio', 'test', 'inspect'] as const)
      await (await createHost(configOf({ curious: curious() }), { purpose, log: createTestLog() })).close()
    expect(told).to.deep.equal(['serve', 'serve', 'stdio', 'test', 'inspect'])
  })

  it('inspect does not connect to Redis', async () => {
    let connections = 0
    const redis = createServer().on('connection', () => connections++)
    await once(redis.listen(0, '127.0.0.1'), 'listening')
    const { port } = redis.address() as AddressInfo
    const plugins = { 'cluster-redis': {}, 'rate-limit': { user: '9/1m', store: 'redis' } } as const
    const config = { ...configOf(plugins), redis: { url: `redis://127.0.0.1:${port}` }, secrets: ['s'.repeat(32)] }
    const host = await createHost(config, { purpose: 'inspect', log: createTestLog() })
    await host.start()
    expect(host.inspect('/mcp')?.explainPlugins().join()).to.include('at most 9 requests')
    await host.close()
    expect(connections).to.equal(0)
    redis.close()
  })

  it('inspect does not listen', async () => {
    const host = await createHost(configOf({}), { purpose: 'inspect', log: createTestLog() })
    await host.start()
    const error = await host.listen().catch((error: Error) => error)
    expect(String(error)).to.match(/purpose: 'inspect'.*for inspection only/)
    await host.close()
  })
})

describe('Port and file checks of start and check', () => {
  it('report a port in use with its line', async () => {
    const port = await freePort()
    const taken = createServer().listen(port, '127.0.0.1')
    const folder = await makeFolder({
      'mcp.config.json': JSON.stringify(
        {
          server: { name: 'taken', version: '1.0.0' },
          http: { port: 0 },
          secrets: ['a secret for tests, long enough to be one'],
          toolsets: { all: [] },
          routes: { '/': { toolsets: 'all' } },
          plugins: { 'transport-streamable': {}, metrics: { port } },
        },
        null,
        2,
      ),
    })
    try {
      const host = await loadHost({ cwd: folder }, createTestLog())
      const error = (await host.listen().catch((error: unknown) => error)) as Error
      await host.close({ grace: 0 })
      expect(error.message).to.match(
        new RegExp(
          `mcp\\.config\\.json:\\d+: plugins\\.metrics\\.port: port ${port} of 127\\.0\\.0\\.1 is in use; set another`,
        ),
      )
      expect(error).to.include({ exitCode: 1 })
    } finally {
      taken.close()
    }
  })

  const faultsOf = async (plugins: NonNullable<Config['plugins']>, more: Partial<Config> = {}, directory?: string) => {
    const made = createHost(
      { ...configOf(plugins), ...more },
      { purpose: 'inspect', log: createTestLog(), ...(directory !== undefined && { directory }) },
    )
    return made.then(
      host => host.close().then(() => 'fine'),
      (error: Error) => error.message,
    )
  }

  it('report the same port for host and metrics', async () => {
    const at = (port: number, host = '127.0.0.1') => ({ http: { port, host } })
    const told = /plugins\.metrics\.port: 4000 is the host's own port/
    expect(await faultsOf({ metrics: { port: 4000 } }, at(4000))).to.match(told)
    expect(await faultsOf({ metrics: { port: 4000 } }, at(4000, '0.0.0.0'))).to.match(told)
    expect(await faultsOf({ metrics: { port: 4000 } }, at(4000, 'localhost'))).to.match(told)
    expect(await faultsOf({ metrics: { port: 4000 } }, at(4001))).to.equal('fine')
    expect(await faultsOf({ metrics: { port: 4000 } }, at(4000, '192.0.2.1'))).to.equal('fine')
    expect(await faultsOf({ metrics: { port: 0 } }, at(0))).to.equal('fine')
  })

  it('report paths that are not folders, and create no folder', async () => {
    const folder = await makeFolder({ 'a-file': '' })
    const fault = (plugins: NonNullable<Config['plugins']>) => faultsOf(plugins, {}, folder)
    for (const name of ['audit', 'access-log'])
      expect(await fault({ [name]: { file: 'a-file/lines' } })).to.match(/a-file/)
    await mkdir(join(folder, 'there'))
    for (const name of ['there', 'missing']) {
      const fine = { audit: { file: `${name}/audit.jsonl` }, 'access-log': { file: `${name}/access.log` } }
      expect(await fault(fine)).to.equal('fine')
    }
    expect(await readdir(folder, { recursive: true })).to.have.members(['a-file', 'package.json', 'there'])
  })

  it('report a file used by two plugins, in any spelling, and a file that is a folder', async () => {
    const folder = await makeFolder({ 'logs/there': '' })
    const fault = (plugins: NonNullable<Config['plugins']>) => faultsOf(plugins, {}, folder)
    const both = await fault({ 'access-log': { file: 'logs/all' }, audit: { file: './logs/../logs/all' } })
    expect(both).to.match(/plugins\.(audit|access-log)\.file: (access-log|audit)/)
    for (const name of ['audit', 'access-log']) {
      expect(await fault({ [name]: { file: 'logs' } })).to.match(/\.file: .*logs is a folder: set the path of a file/)
    }
  })

  it('report folders without write permission', async function () {
    const folder = await makeFolder({})
    // Nothing is forbidden to root but what is mounted so.
    const isRoot = process.getuid?.() === 0
    if (isRoot) mountSmall(this, folder, 'ro')
    else await chmod(folder, 0o500)
    const told = (await faultsOf({ audit: {}, 'access-log': { file: 'access.log' } }, {}, folder)).split('\n\n')
    const existing = await faultsOf({ 'access-log': { file: '/dev/null' } }, {}, folder)
    if (isRoot) unmount(folder)
    else await chmod(folder, 0o700)
    expect(told.join()).to.match(/audit\.jsonl cannot be written: .*access\.log cannot be written: /s)
    expect(existing).to.equal('fine')
  })
})
