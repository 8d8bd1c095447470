// Tests `mcp-host connect`: the configuration for each client, and how it is written to the file of the client.
import { chmod, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { readArguments } from '../../cli/command.ts'
import { CLIENTS, type ClientRow, type Machine, type Reached } from '../../cli/connect/clients.ts'
import { endpointAt, throughProxy } from '../../cli/connect/endpoint.ts'
import { writeConfig } from '../../cli/connect/write-config.ts'
import { connectCommand } from '../../cli/connect.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { configText, runCli, stopAll } from './in-process.ts'
import { testContext } from './run-command.ts'

after(stopAll)
after(removeFolders)

const machine = (platform: NodeJS.Platform, env: NodeJS.ProcessEnv = {}): Machine => ({
  platform,
  home: '/home/ada',
  cwd: '/home/ann/shop',
  env,
})
/** A program that is installed, as far as its name tells. */
const SCRIPT = new URL('../../create/create-mcp-host.js', import.meta.url).pathname
const URL_GIVEN = 'https://mcp.example.com/mcp'

describe('table of clients', () => {
  it('has the file of each client', () => {
    const fileOf = CLIENTS['claude-desktop'].config.file
    expect(fileOf(machine('darwin'))).to.equal(
      '/home/ada/Library/Application Support/Claude/claude_desktop_config.json',
    )
    expect(fileOf(machine('win32', { APPDATA: 'C:\\Users\\ada\\AppData\\Roaming' }))).to.contain(
      'C:\\Users\\ada\\AppData\\Roaming\\Claude',
    )
    expect(fileOf(machine('linux'))).to.equal('/home/ada/.config/Claude/claude_desktop_config.json')
    expect(CLIENTS.cursor.config.file(machine('linux'))).to.equal('/home/ada/.cursor/mcp.json')
    expect(CLIENTS.vscode.config.file(machine('linux'))).to.equal('/home/ann/shop/.vscode/mcp.json')
    expect(CLIENTS['claude-code'].config.file(machine('linux'))).to.equal('/home/ann/shop/.mcp.json')
    expect(CLIENTS.zed.config.file(machine('darwin'))).to.equal('/home/ada/.config/zed/settings.json')
  })

  it('has the entry or command of each client', () => {
    const rows: ReadonlyArray<readonly [string, ClientRow]> = Object.entries(CLIENTS)
    const url = { url: URL_GIVEN }
    const program = { command: 'npx', args: ['-y', 'mcp-host', 'proxy', URL_GIVEN] }
    const described = (reached: Reached) =>
      Object.fromEntries(
        rows.map(([name, { config, command }]) => [
          name,
          config ? { [config.key]: config.entry(reached) } : command?.('shop', reached).join(' '),
        ]),
      )
    expect(described(url)).to.deep.equal({
      'claude-code': { mcpServers: { type: 'http', ...url } },
      'claude-desktop': { mcpServers: url },
      cursor: { mcpServers: url },
      vscode: { servers: { type: 'http', ...url } },
      codex: `codex mcp add shop --url ${URL_GIVEN}`,
      'gemini-cli': { mcpServers: { httpUrl: URL_GIVEN } },
      windsurf: { mcpServers: { serverUrl: URL_GIVEN } },
      zed: { context_servers: url },
      junie: { mcpServers: url },
      cline: { mcpServers: { type: 'streamableHttp', ...url } },
      goose: `goose session --with-streamable-http-extension ${URL_GIVEN}`,
      'lm-studio': { mcpServers: url },
      opencode: { mcp: { type: 'remote', ...url, enabled: true } },
      inspector: `npx -y @modelcontextprotocol/inspector --transport http --server-url ${URL_GIVEN}`,
      json: { mcpServers: { type: 'http', ...url } },
    })
    expect(described(program)).to.deep.include({
      codex: `codex mcp add shop -- npx -y mcp-host proxy ${URL_GIVEN}`,
      windsurf: { mcpServers: program },
      goose: `goose session --with-extension npx -y mcp-host proxy ${URL_GIVEN}`,
      opencode: { mcp: { type: 'local', command: ['npx', ...program.args], enabled: true } },
    })
  })
})

describe('program that a client starts', () => {
  const given = 'https://mcp.example/m|c"p?team=1&calc.exe&x=%PATH%^ <y>'
  const url = 'https://mcp.example/m|c%22p?team=1&calc.exe&x=%PATH%^%20%3Cy%3E'
  const proxy = ['-y', 'mcp-host', 'proxy', url]

  it('is npx where it needs no shell', () => {
    const starter = { platform: 'linux' as const, execPath: '/usr/bin/node', script: '' }
    expect(throughProxy(endpointAt(given), starter)).to.deep.equal({ command: 'npx', args: proxy })
  })

  it('is node on Windows, where no shell parses the URL', async () => {
    const folder = await makeFolder({ 'node_modules/npm/bin/npx-cli.js': '' })
    const starter = { platform: 'win32' as const, execPath: join(folder, 'node.exe'), script: '' }
    expect(throughProxy(endpointAt(given), starter)).to.deep.equal({
      command: join(folder, 'node.exe'),
      args: [join(folder, 'node_modules/npm/bin/npx-cli.js'), ...proxy],
    })
    const elsewhere = { ...starter, execPath: '/nowhere/node.exe' }
    expect(() => throughProxy(endpointAt(given), elsewhere)).to.throw('npx is not next to /nowhere/node.exe: ')
  })
})

describe('mcp-host connect', () => {
  it('prints the configuration of each client', async () => {
    const folder = await makeFolder({})
    const clients = ['claude-code', 'claude-desktop', 'cursor', 'vscode', 'inspector']
    const home = { HOME: folder, XDG_CONFIG_HOME: '' }
    const ends = await Promise.all(clients.map(client => runCli(['connect', client, URL_GIVEN], folder, home)))
    const [code, desktop, cursor, vscode, inspector] = ends.map(({ stdout }) => stdout)
    expect(code).to.include('--transport').and.include(`mcp-example-com ${URL_GIVEN}`)
    expect(desktop).to.contain('"args": [\n        "-y",\n        "mcp-host",\n        "proxy",\n        "https:')
    expect(cursor).to.contain(`"mcpServers": {\n    "mcp-example-com": {\n      "url": "${URL_GIVEN}"`)
    expect(vscode).to.contain('"servers": {\n    "mcp-example-com": {\n      "type": "http"')
    expect(inspector).to.contain(`npx -y @modelcontextprotocol/inspector --transport http --server-url ${URL_GIVEN}\n`)
    expect(ends.map(end => end.code)).to.deep.equal([0, 0, 0, 0, 0])
  })

  it('uses the server of the local config: its URL, or a program', async () => {
    const config = configText({ http: '{ port: 4711 }', routes: "{ '/t/:category': { toolsets: ':category' } }" })
    const folder = await makeFolder({ 'mcp.config.mjs': config })
    const [plain, routed, stdio, nowhere] = await Promise.all([
      runCli(['connect', 'claude-code', '--name', 'mine'], folder),
      runCli(['connect', 'cursor', '--route', '/t/second'], folder),
      runCli(['connect', 'vscode', '--stdio'], folder, {}, { script: SCRIPT }),
      runCli(['connect', 'cursor', '--route', '/nope'], folder),
    ])
    expect(plain?.stdout).to.match(/--transport.*http:\/\/127\.0\.0\.1:4711\/t\/first/)
    expect(routed?.stdout).to.contain('"cli-test": {\n      "url": "http://127.0.0.1:4711/t/second"')
    expect(stdio?.stdout).to.match(/"type": "stdio",\n.*"command": ".*node"/)
    expect(stdio?.stdout).to.contain(`"--config",\n        "${join(folder, 'mcp.config.mjs')}",`)
    expect(stdio?.stdout).to.contain('"--route",\n        "/t/first"')
    expect(nowhere?.stderr).to.match(/--route.*\/t\/:category/)
    expect(nowhere?.code).to.equal(2)
  })

  for (const [what, args, message] of [
    ['a client that it does not know', ['curser', URL_GIVEN], 'there is no client "curser"; did you mean "cursor"?'],
    ['a name that no client takes', ['cursor', URL_GIVEN, '--name', 'a b'], '--name is "a b"; give 1 to 64 letters'],
    ['a password in the URL', ['cursor', 'https://a:b@example.com/'], 'the URL contains a user or password'],
    ['a URL and a route', ['cursor', URL_GIVEN, '--route', '/'], '--route and --config select a local config'],
    ['a URL to be started', ['cursor', URL_GIVEN, '--stdio'], '--stdio starts the server of a local config'],
    ['a client without a file', ['inspector', URL_GIVEN, '--write', '--yes'], 'MCP Inspector has no settings file'],
  ] as const) {
    it(`rejects ${what}`, async () => {
      const { values, positionals } = readArguments('connect', connectCommand, args)
      const error = await rejectionOf(connectCommand.run(values, positionals, testContext()))
      expect(String(error)).to.contain(message)
      expect(error).to.have.property('exitCode', 2)
    })
  }

  it('writes no entry that cannot start: stdio has no user, and the route requires one', async () => {
    const config = configText({
      http: '{ port: 4711 }',
      routes: "{ '/': { toolsets: 'first', authorize: true } }",
      plugins: `bearer: definePlugin({ options: { type: 'object' }, provides: ['user', 'authorize'], setup() {} })({})`,
    })
    const folder = await makeFolder({ 'mcp.config.mjs': config })
    const file = join(folder, 'mcp.config.mjs')
    const args = ['claude-desktop', '--stdio', '--write', '--yes', '--config', file]
    const { values, positionals } = readArguments('connect', connectCommand, args)
    const error = await rejectionOf(connectCommand.run(values, positionals, testContext()))
    expect(String(error))
      .to.match(/routes\['\/'\]/)
      .and.to.contain("plugins['transport-stdio'].user")
    expect(error).to.have.property('exitCode', 2)
  })

  it('writes after it printed the change, and preserves everything else, the file mode and a backup', async () => {
    const before = '{\n  // mine\n  "mcpServers": { "a": { "env": { "KEY": "hidden" } } }\n}\n'
    const folder = await makeFolder({ '.cursor/mcp.json': before })
    const file = join(folder, '.cursor/mcp.json')
    await chmod(file, 0o640)
    const args = ['connect', 'cursor', URL_GIVEN, '--write', '--yes']
    const first = await runCli(args, folder, { HOME: folder })
    expect(first.stdout).to.contain('+   "mcp-example-com": {\n').and.to.include(`${file}.bak`)
    expect(first.stdout).not.to.contain('hidden')
    const text = await readFile(file, 'utf8')
    expect(text).to.contain('// mine').and.to.contain('hidden').and.to.contain(URL_GIVEN)
    expect((await stat(file)).mode & 0o777).to.equal(0o640)
    expect(await readFile(`${file}.bak`, 'utf8')).to.equal(before)
    const again = await runCli(args, folder, { HOME: folder })
    expect(again.stdout).to.include(file)
    expect((await readdir(join(folder, '.cursor'))).sort()).to.deep.equal(['mcp.json', 'mcp.json.bak'])
  })

  it('prints an older entry without control characters', async () => {
    const before = '{ "mcpServers": { "srv": { "url": "\u009b31m\u202e", "x": 1 /* \u001b[8m\u0007 */ } } }'
    const folder = await makeFolder({ '.cursor/mcp.json': before })
    const args = ['connect', 'cursor', URL_GIVEN, '--name', 'srv', '--write', '--yes']
    const { stdout } = await runCli(args, folder, { HOME: folder })
    expect(stdout.replaceAll('\n', '')).not.to.match(/[\p{Cc}\u202e]/u)
    expect(stdout).to.contain('- the existing entry "srv"\n')
  })

  it('prints the target of a link, and the part of a URL that looks like a secret', async () => {
    const folder = await makeFolder({ 'real.json': '{}', '.cursor/a.json': '{}' })
    await symlink('../real.json', join(folder, '.cursor/mcp.json'))
    const url = `${URL_GIVEN}?api_key=1&page=2`
    const { stdout, stderr } = await runCli(['connect', 'cursor', url, '--write', '--yes'], folder, { HOME: folder })
    expect(stdout)
      .to.include(`${join(folder, '.cursor/mcp.json')}`)
      .and.include(`${join(folder, 'real.json')}`)
    expect(stderr)
      .to.match(/URL.*api_key/)
      .and.not.to.contain('page')
    expect(await readFile(join(folder, 'real.json'), 'utf8')).to.contain('api_key=1')
  })

  it('writes through no link out of the project, and prints the target of a link for a new file', async () => {
    const outside = await makeFolder({})
    const folder = await makeFolder({ 'inside/a': '' })
    await symlink(outside, join(folder, '.vscode'))
    await symlink(join(outside, 'mcp.json'), join(folder, '.mcp.json'))
    for (const client of ['vscode', 'claude-code']) {
      if (client === 'claude-code') await writeFile(join(outside, 'mcp.json'), '{}')
      const { code, stdout, stderr } = await runCli(['connect', client, URL_GIVEN, '--write', '--yes'], folder)
      expect([code, stdout]).to.deep.equal([2, ''])
      expect(stderr).to.match(/nothing was written: \S+ is a link to \S+mcp\.json, outside of this project/)
    }
    expect(await readFile(join(outside, 'mcp.json'), 'utf8')).to.equal('{}')
    const own = await makeFolder({ 'inside/a': '' })
    await symlink('inside', join(own, '.vscode'))
    await symlink(outside, join(own, '.cursor'))
    await rm(join(outside, 'mcp.json'))
    for (const [client, end] of [
      ['vscode', join(own, 'inside')],
      ['cursor', outside],
    ] as const) {
      const { stdout } = await runCli(['connect', client, URL_GIVEN, '--write', '--yes'], own, { HOME: own })
      expect(stdout).to.contain(`which is a link to ${join(end, 'mcp.json')} (new)\n`)
      expect(await readFile(join(end, 'mcp.json'), 'utf8')).to.contain(URL_GIVEN)
    }
  })

  it('writes nothing without a terminal', async () => {
    const folder = await makeFolder({})
    const { code, stderr } = await runCli(['connect', 'vscode', URL_GIVEN, '--write'], folder)
    expect(stderr).to.contain('no terminal for the confirmation; use --yes')
    expect(code).to.equal(2)
    expect(await readdir(folder)).to.deep.equal(['package.json'])
  })

  it('does not change a file that it cannot read', async () => {
    const folder = await makeFolder({ '.vscode/mcp.json': '{ "servers": ' })
    const { code, stderr } = await runCli(['connect', 'vscode', URL_GIVEN, '--write', '--yes'], folder)
    expect(stderr).to.match(/mcp\.json/)
    expect(code).to.equal(1)
    expect(await readFile(join(folder, '.vscode/mcp.json'), 'utf8')).to.equal('{ "servers": ')
  })
})

describe('the file of a client', () => {
  it('is created for the user only, with its folder', async () => {
    const file = join(await makeFolder({}), 'deep/er/mcp.json')
    expect(await writeConfig(file, undefined, '{}\n')).to.equal(undefined)
    expect((await stat(file)).mode & 0o777).to.equal(0o600)
  })

  it('that is a link remains a link, and no backup is overwritten', async () => {
    const folder = await makeFolder({ 'real.json': '1', 'real.json.bak': 'older' })
    await symlink('real.json', join(folder, 'link.json'))
    expect(await writeConfig(join(folder, 'link.json'), '1', '2')).to.equal(join(folder, 'real.json.bak1'))
    expect(await readFile(join(folder, 'real.json'), 'utf8')).to.equal('2')
    expect(await readFile(join(folder, 'real.json.bak'), 'utf8')).to.equal('older')
  })

  it('that was changed meanwhile is not overwritten', async () => {
    const folder = await makeFolder({ 'a.json': 'theirs' })
    const error = await rejectionOf(writeConfig(join(folder, 'a.json'), 'mine', 'new'))
    expect(String(error)).to.contain('was changed in the meantime; run this again')
    expect(await readFile(join(folder, 'a.json'), 'utf8')).to.equal('theirs')
  })

  it('is written completely or not at all', async () => {
    const folder = await makeFolder({})
    await mkdir(join(folder, 'x'))
    await writeFile(join(folder, 'x', 'y'), '')
    const error = await rejectionOf(writeConfig(join(folder, 'x', 'y', 'z.json'), undefined, '{}'))
    expect(String(error)).to.match(/cannot be (?:read|written)/)
  })
})
