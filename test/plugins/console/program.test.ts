// The console of a host that the CLI runs: login URL, surface and lock, explanations, sources of the config, and reloads.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { withConsole } from '../../../cli/console.ts'
import { defineResource, defineTool } from '../../../core/index.ts'
import {
  CORE,
  type ConfigParts,
  configText,
  PLUGIN,
  type Running,
  runCli,
  startCli,
  stopAll,
} from '../../cli/in-process.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { ask, headersIn, logIn, PAGE_HEADERS } from './console-client.ts'

after(async () => {
  await stopAll()
  await stopHosts()
  await removeFolders()
})

const CONSOLE_LINE = /^ {2}Console {2}(http:\/\/127\.0\.0\.1:\d+\/#t=\S+)$/m

async function openConsole(running: Running) {
  const [, url = ''] = await running.printed(CONSOLE_LINE)
  await running.listening()
  const { origin, hash } = new URL(url)
  const token = hash.slice('#t='.length)
  const first = await logIn(origin, token)
  expect(first.status).to.equal(200)
  const headers = { ...PAGE_HEADERS, ...headersIn(first) }
  const get = async (path: string) => (await ask(`${origin}/api/${path}`, { headers })).body
  const post = async (path: string, body: object) =>
    (await ask(`${origin}/api/${path}`, { method: 'POST', headers, body })).body
  return { origin, token, get, post }
}

/** Starts a host in this folder, and logs in to its console. */
const start = (folder: string, args: readonly string[] = []) => openConsole(startCli(['start', ...args], folder))

const parts = (more: ConfigParts = {}): ConfigParts => ({
  ...more,
  plugins: `console: { port: 0 }, ${more.plugins ?? ''}`,
})

// The token of a user is the name of the user's role.
const ROLES = {
  before: `import { HostError } from '${CORE}'
import { authorizeRoute } from '${PLUGIN}'
const roles = definePlugin({
  options: { type: 'object', additionalProperties: false, properties: { pin: { type: 'string', writeOnly: true } } },
  provides: ['user', 'authorize'],
  setup(host) {
    host.authenticate((ctx, next) => {
      const [, role] = /^Bearer (.+)$/.exec(ctx.get('Authorization')) ?? []
      if (role === 'false') throw new HostError('unauthorized')
      if (role) ctx.state.user = { subject: 'ada', issuer: 'test', scopes: [], roles: [role], claims: {} }
      return next()
    })
    host.authorize(authorizeRoute(host))
  },
})`,
  plugins: "roles: roles({ pin: 'planted-secret' })",
  routes: "{ '/mcp': { toolsets: ['first'] }, '/admin': { toolsets: ['second'], authorize: { role: 'admin' } } }",
}

describe('console of a host that the CLI runs', () => {
  it('has a URL on one line of the start screen, for one login', async () => {
    const { origin, token } = await start(await makeFolder({ 'mcp.config.mjs': configText(parts()) }))
    expect((await logIn(origin, token)).status).to.equal(401)
  })

  it('prints the command that checks the upstream servers of its config', async () => {
    const upstream = "upstream: { servers: { far: { url: 'http://127.0.0.1:1/' } } }"
    const more = { routes: "{ '/': { toolsets: ['far'] } }", plugins: upstream }
    const { get } = await start(await makeFolder({ 'mcp.config.mjs': configText(parts(more)) }))
    expect((await get('upstreams')).commands[0].command).to.match(/ doctor --config \S+mcp\.config\.mjs$/)
  })

  it('is not served by other commands, or without the plugin', async () => {
    const folder = await makeFolder({ 'mcp.config.mjs': configText(parts()), 'off.config.mjs': configText() })
    for (const command of ['check', 'explain', 'lock', 'diff']) {
      const { code, stdout } = await runCli([command], folder)
      expect(code, command).to.equal(0)
      expect(stdout, command).not.to.match(/#t=/)
    }
    const running = startCli(['start', '--config', 'off.config.mjs'], folder)
    const [page] = await running.printed(/[\s\S]*^listening on .*\n/m)
    expect(page).not.to.match(/#t=|Console/)
  })

  it('is added by dev, unless the config contains it', () => {
    const read = (config: object) => {
      const loaded = { file: '/srv/mcp.config.ts', config, locate: () => undefined }
      return withConsole(loaded).config
    }
    expect(read({ plugins: { cors: {} } })).to.deep.equal({ plugins: { cors: {}, console: { port: 0 } } })
    expect(read({})).to.deep.equal({ plugins: { console: { port: 0 } } })
    for (const own of [false, { port: 9_465 }]) {
      expect(read({ plugins: { console: own } })).to.deep.equal({ plugins: { console: own } })
    }
    expect(read({ plugins: 'wrong' })).to.deep.equal({ plugins: 'wrong' })
  })

  it('compares its tools with the lock file like mcp-host diff', async () => {
    const text = configText(parts())
    const described = text.replace("{ name: 'echo',", "{ name: 'echo', description: 'Repeats.',")
    const folder = await makeFolder({ 'mcp.config.mjs': text, 'next.config.mjs': described })
    const { get } = await start(folder)
    const { clients } = await get('routes')
    expect(clients).to.deep.include({ id: 'cursor', title: 'Cursor' })
    const { items, lock } = await get('surface')
    expect(lock).to.deep.equal({ state: 'none', changes: [] })
    expect(items.map(({ kind, name, path }: Record<string, string>) => [kind, name, path])).to.deep.equal([
      ['tools', 'echo', '/'],
      ['tools', 'other', '/'],
    ])
    await runCli(['lock'], folder)
    expect((await get('surface')).lock.state).to.equal('same')
    await runCli(['lock', '--config', 'next.config.mjs'], folder)
    const changed = (await get('surface')).lock
    const { changes } = JSON.parse((await runCli(['diff', '--connect', '--json'], folder)).stdout)
    expect(changed.state).to.equal('changed')
    expect(changed.changes).to.deep.equal([
      {
        at: '/  tool echo',
        impact: changes[0].impact,
        text: changes[0].what,
        diff: 'was  "Repeats."\nnow  none',
        path: '/',
        kind: 'tools',
        name: 'echo',
      },
    ])
    await writeFile(join(folder, 'mcp.lock.json'), '{')
    const { state, problem } = (await get('surface')).lock
    expect(state).to.equal('unreadable')
    expect(problem).to.match(/mcp\.lock\.json/)
  })

  it('compares upstream servers with their accepted tools, like mcp-host diff', async () => {
    const handler = () => 'Hello'
    const all = [defineTool({ name: 'read', handler }), defineResource({ name: 'page', uri: 'test://page', handler })]
    const origin = await startHost({ toolsets: { all }, routes: { '/': { toolsets: 'all' } } })
    const upstream = `upstream: { servers: { far: { url: '${origin.url}/' } } }`
    const routes = "{ '/': { toolsets: ['first', 'far'] } }"
    const folder = await makeFolder({ 'mcp.config.mjs': configText(parts({ plugins: upstream, routes })) })
    await runCli(['lock'], folder)
    const { get } = await start(folder)
    const differences = async () => {
      const { items, lock } = await get('surface')
      expect(items.map(({ name }: Record<string, string>) => name)).to.include.members(['far_read', 'test://page'])
      const { changes } = JSON.parse((await runCli(['diff', '--connect', '--json'], folder)).stdout)
      const texts = (list: readonly Record<string, string>[], key: string) => list.map(change => change[key])
      expect(texts(lock.changes, 'text')).to.deep.equal(texts(changes, 'what'))
      return lock.changes.length
    }
    expect(await differences(), 'a server that is not accepted').to.equal(1)
    expect((await runCli(['accept'], folder)).code).to.equal(0)
    expect(await differences(), 'an accepted server').to.equal(0)
  })

  it('has a difference for each withheld tool of a running upstream server', async () => {
    const handler = () => 'Hello'
    const origin = await startHost({
      toolsets: { all: [defineTool({ name: 'keep', handler })] },
      routes: { '/': { toolsets: 'all' } },
    })
    const { tools } = origin.host.runtime
    tools.add(defineTool({ name: 'read', handler }))
    const upstream = `upstream: { servers: { far: { url: '${origin.url}/' } } }`
    const routes = "{ '/': { toolsets: ['first', 'far'] } }"
    const folder = await makeFolder({ 'mcp.config.mjs': configText(parts({ plugins: upstream, routes })) })
    await runCli(['accept'], folder)
    tools.remove('read')
    tools.add(defineTool({ name: 'read', description: `Another\u202e. ${'x'.repeat(5_000)}`, handler }))
    const { get } = await start(folder)
    const { lock, items, withheld } = await get('surface')
    const [kept, changed] = ['far_keep', 'far_read'].map(name =>
      items.find((item: { name: string }) => item.name === name),
    )
    expect(kept).not.to.have.property('withheld')
    expect(changed.withheld).to.match(/mcp-host accept far/)
    expect(withheld).to.deep.equal([['far: tool read', changed.withheld]])
    expect(lock.state).to.equal('changed')
    const { changes } = JSON.parse((await runCli(['diff', '--connect', '--json'], folder)).stdout)
    expect(lock.changes.map(({ text }: Record<string, string>) => text)).to.deep.equal([changes[0].what])
    expect(changes[0].what).to.match(/read/)
    const { diff } = lock.changes[0]
    expect(diff).to.match(/^was {2}\{.*\}\nnow {2}\{.*"Another\\u202e\. x+…/)
    expect(diff.length).to.be.below(4_500)
    const { stdout } = await runCli(['diff', '--connect'], folder)
    expect(stdout.replace(/^ +/gm, '')).to.include(diff)
  })

  it('shows the definitions of withheld tools without a lock file', async () => {
    const tool = defineTool({ name: 'read', description: 'Reads.', handler: () => 'Hello' })
    const origin = await startHost({ toolsets: { all: [tool] }, routes: { '/': { toolsets: 'all' } } })
    const upstream = `upstream: { servers: { far: { url: '${origin.url}/', newTools: 'withhold' } } }`
    const routes = "{ '/': { toolsets: ['first', 'far'] } }"
    const folder = await makeFolder({ 'mcp.config.mjs': configText(parts({ plugins: upstream, routes })) })
    const { get } = await start(folder)
    const { state, changes } = (await get('surface')).lock
    expect(state).to.equal('none')
    expect(changes).to.have.length(1)
    expect(changes[0].diff).to.match(/^now {2}\{.*"description": ?"Reads\."/s)
  })

  it('explains access with the text of mcp-host explain', async () => {
    const folder = await makeFolder({ 'mcp.config.mjs': configText(parts(ROLES)) })
    const { post } = await start(folder)
    const explained = async (caller: object, args: readonly string[]) => {
      const body = { path: '/admin', kind: 'tools', name: 'other', caller }
      const { lines } = await post('explain', body)
      const { stdout } = await runCli(['explain', '--route', '/admin', '--tool', 'other', ...args], folder)
      expect(`${lines.join('\n')}\n`).to.equal(stdout)
      return lines.at(-1)
    }
    expect(await explained({}, [])).to.match(/^result +401 /)
    expect(await explained({ token: 'guest' }, ['--token', 'guest'])).to.match(/^result +403 /)
    expect(await explained({ token: 'admin' }, ['--token', 'admin'])).to.match(/^result +allowed/)
    expect(await explained({ token: 'false' }, ['--token', 'false'])).to.match(/^result +401 /)
    const last = async (caller: object) =>
      (await post('explain', { path: '/admin', kind: 'tools', name: 'other', caller })).lines.at(-1)
    expect(await last({ roles: ['admin'] })).to.match(/^result +allowed/)
    expect(await last({ roles: [], scopes: [] })).to.match(/^result +403 /)
  })

  it('shows the config with file and line of each value, and without secrets', async () => {
    const { get } = await start(await makeFolder({ 'mcp.config.mjs': configText(parts(ROLES)) }), ['--port', '0'])
    const view = await get('config')
    const { config, keys } = view
    expect(JSON.stringify(view)).not.to.match(/planted-secret|long enough to be one/)
    expect(config.plugins.roles).to.deep.equal({ pin: '***' })
    const lineOf = (words: string) =>
      `mcp.config.mjs:${
        configText(parts(ROLES))
          .split('\n')
          .findIndex(line => line.includes(words)) + 1
      }`
    expect(keys['server.name']).to.deep.include({
      source: lineOf("name: 'cli-test'"),
      isDefault: false,
      restart: false,
    })
    expect(keys['plugins.console.port']).to.deep.include({
      source: lineOf('console:'),
      isDefault: false,
      restart: true,
    })
    expect(keys['http.writeTimeout']).to.deep.include({ isDefault: true, restart: true })
    expect(keys['http.writeTimeout']).not.to.have.property('source')
    expect(keys['http.writeTimeout'].description).to.be.a('string')
    expect(keys['routes./admin.authorize.role']).to.deep.include({ source: lineOf("'/admin':"), restart: true })
    expect(keys['routes./admin.toolsets']).to.deep.include({ restart: false })
  })

  it('reloads and reports each reload, whatever started it', async () => {
    const written = {
      server: { name: 'reloaded', version: '1.0.0' },
      http: { port: 0 },
      toolsets: { none: [] },
      routes: { '/': { toolsets: 'none' } },
      plugins: { 'transport-streamable': {}, console: { port: 0, actions: true } },
    }
    const folder = await makeFolder({ 'mcp.config.json': JSON.stringify(written) })
    const write = (change: object) =>
      writeFile(join(folder, 'mcp.config.json'), JSON.stringify({ ...written, ...change }))
    const running = startCli(['start'], folder)
    const { get, post } = await openConsole(running)
    const reload = async () => {
      const { ok } = await post('actions/reload', { confirm: true })
      const last = (await get('config')).reload
      expect(last.ok).to.equal(ok)
      return last
    }
    expect((await get('config')).reload).to.equal(null)
    await write({ server: { ...written.server, title: 'New' } })
    expect(await reload()).to.deep.include({ ok: true, taken: ['server'], restart: [] })
    expect((await get('config')).keys['server.title']).to.deep.include({ source: 'mcp.config.json:1' })
    await write({ http: { port: 0, writeTimeout: '9s' } })
    expect(await reload()).to.deep.include({ ok: false, taken: [], restart: ['http.writeTimeout'] })
    expect((await get('config')).keys['http.writeTimeout']).to.deep.include({ isDefault: true })
    await write({ http: { port: 'wrong' } })
    const failed = await reload()
    expect(failed.ok).to.equal(false)
    expect(failed.problem).to.match(/http\.port/)
    const result = await post('actions/reload', { confirm: true })
    expect(result.ok, 'the result of the action').to.equal(false)
    expect(result.message).to.match(/http\.port/)
    await running.logged(/"code":"MH3609".*"outcome":"failed"/)
    const warned = async () =>
      (await get('overview')).warnings.flatMap(({ code, reason = '' }: Record<string, string>) =>
        code === 'MH3101' ? [reason] : [],
      )
    expect((await warned())[0]).to.match(/http\.port/)
    await write({ server: { ...written.server, title: 'Signalled' } })
    running.child.kill('SIGHUP')
    await running.logged(/"code":"MH3103".*"taken":\["server"\][\s\S]*"code":"MH3103".*"taken":\["server"\]/)
    expect((await get('config')).reload).to.deep.include({ ok: true, taken: ['server'] })
    expect(await warned(), 'after a successful reload').to.deep.equal([])
  })
})
