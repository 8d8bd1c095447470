// Tests `mcp-host import` and `mcp-host add upstream`: what they write to configs of each format.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { parse } from 'yaml'
import { addCommand } from '../../cli/add.ts'
import { importCommand } from '../../cli/import.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { testContext } from './run-command.ts'

after(removeFolders)

const JSON_CONFIG = JSON.stringify({ server: { name: 'a', version: '1.0.0' }, toolsets: { own: [] }, routes: {} })
const CODE_CONFIG = `export default {
  server: { name: 'a', version: '1.0.0' },
  toolsets: {},
  plugins: {
  },
  routes: {
  },
}
`

async function imported(config: string, configText: string, file: string, text: string) {
  const folder = await makeFolder({ [config]: configText, [file]: text })
  const context = testContext({ cwd: folder })
  await importCommand.run({ config }, [file], context)
  return { written: readFileSync(join(folder, config), 'utf8'), ...context.text, folder }
}

const CLAUDE = JSON.stringify({
  mcpServers: {
    'my files': { command: 'npx', args: ['-y', '@scope/files', '/data'], env: { LEVEL: 'info', API_KEY: 's3cret' } },
    hosted: {
      type: 'http',
      url: 'https://mcp.example.com/mcp',
      headers: { 'X-Team': 'a', Authorization: 'Bearer s3cret' },
    },
    off: { command: 'x', disabled: true },
    own: { command: 'y' },
    broken: {},
  },
})

describe('mcp-host import', () => {
  it('adds the servers of Claude and Cursor, without their secrets', async () => {
    const { written, stdout, stderr } = await imported('a.json', JSON_CONFIG, 'claude_desktop_config.json', CLAUDE)
    const { plugins, routes } = JSON.parse(written)
    expect(plugins.upstream.servers).to.deep.equal({
      'my-files': {
        command: 'npx',
        args: ['-y', '@scope/files', '/data'],
        env: { LEVEL: 'info' },
        passEnv: ['API_KEY'],
      },
      hosted: { url: 'https://mcp.example.com/mcp', headers: { 'X-Team': 'a' } },
    })
    expect(routes).to.deep.equal({ '/my-files': { toolsets: 'my-files' }, '/hosted': { toolsets: 'hosted' } })
    expect(written).not.to.contain('s3cret')
    expect(stdout).to.contain('Added toolset "my-files" to a.json, served at /my-files').and.contain('API_KEY')
    expect(stdout).to.match(/^Next: mcp-host dev/m)
    expect(stderr)
      .to.contain('hosted: header Authorization is left out, because it contains a secret')
      .and.contain('off: left out, because it is disabled')
      .and.contain('own: left out, because it exists at toolsets.own')
      .and.contain('broken: left out')
    expect(`${stdout}${stderr}`).not.to.contain('s3cret')
  })

  it('reads the environment in a config in code, for inputs of VS Code and variables', async () => {
    const text = `{
      // comments are permitted
      "servers": {
        "github": { "type": "http", "url": "https://x.example/mcp", "headers": { "Authorization": "Bearer \${input:github-token}" } },
        "local": { "command": "node", "args": ["\${workspaceFolder}/server.js", "\${env:MODE}"], "env": { "TOKEN": "\${input:t}" } },
      },
      "inputs": []
    }`
    const { written, stdout, folder } = await imported('a.mjs', CODE_CONFIG, '.vscode/mcp.json', text)
    expect(written)
      .to.contain(`headers: { Authorization: \`Bearer \${process.env['GITHUB_TOKEN'] ?? ''}\` }`)
      .and.contain(`args: ['${folder}/server.js', \`\${process.env['MODE'] ?? ''}\`]`)
      .and.contain("passEnv: ['TOKEN']")
    expect(stdout).to.contain('GITHUB_TOKEN, MODE, TOKEN')
    const { default: config } = (await import(`${pathToFileURL(join(folder, 'a.mjs'))}?written`)) as {
      default: Record<string, object>
    }
    expect(config['plugins']).to.have.nested.property('upstream.servers.local.command', 'node')
    expect(config['routes']).to.have.keys('/github', '/local')
  })

  it('leaves out servers that read the environment, with one message, if the config is not code', async () => {
    const servers = {
      hosted: { url: 'https://a.example', headers: { Authorization: 'Bearer $' + '{TOKEN}' } },
      local: { command: 'a', args: ['--token', '$' + '{env:X}', '$' + '{env:Y}'] },
      plain: { command: 'b' },
    }
    for (const [file, config] of [
      ['a.json', JSON_CONFIG],
      ['a.yaml', JSON_CONFIG],
    ] as const) {
      const text = JSON.stringify({ mcpServers: servers })
      const { written, stderr } = await imported(file, config, '.mcp.json', text)
      expect(parse(written).plugins.upstream.servers).to.deep.equal({ plain: { command: 'b' } })
      expect(stderr.trimEnd().split('\n')).to.have.lengthOf(2)
      expect(stderr)
        .to.match(/^hosted: left out, because header Authorization contains TOKEN .*mcp\.config\.ts/m)
        .and.match(/^local: left out, because .*X/m)
    }
  })

  it('does not recommend code for a secret header of a YAML config', async () => {
    const servers = { hosted: { url: 'https://a.example', headers: { Authorization: 'Bearer abc' } } }
    const { stderr } = await imported('a.yaml', JSON_CONFIG, '.mcp.json', JSON.stringify({ mcpServers: servers }))
    expect(stderr)
      .to.match(/^hosted: header Authorization is left out.*mcp\.config\.ts/m)
      .and.not.match(/process\.env/)
  })

  it('refuses files without servers', async () => {
    for (const text of ['{', '[]', '{}', '{"mcpServers": []}']) {
      const error = await rejectionOf(imported('a.json', JSON_CONFIG, 'mcp.json', text))
      expect(String(error)).to.match(/mcp\.json (?:is not a JSON object|has no MCP servers)/)
    }
  })
})

describe('mcp-host add upstream', () => {
  const add = async (...words: string[]) => {
    const folder = await makeFolder({ 'a.json': JSON_CONFIG })
    const context = testContext({ cwd: folder })
    await addCommand.run({ config: 'a.json' }, ['upstream', ...words], context)
    return JSON.parse(readFileSync(join(folder, 'a.json'), 'utf8'))
  }

  it('adds a URL or a command, with a route', async () => {
    const hosted = await add('github', 'https://mcp.example.com/mcp')
    expect(hosted.plugins.upstream.servers).to.deep.equal({ github: { url: 'https://mcp.example.com/mcp' } })
    expect(hosted.routes).to.deep.equal({ '/github': { toolsets: 'github' } })
    expect((await add('near', 'localhost:3901/mcp')).plugins.upstream.servers).to.deep.equal({
      near: { url: 'http://localhost:3901/mcp' },
    })
    expect(hosted.plugins['transport-streamable']).to.deep.equal({})
    const local = await add('files', 'npx', '-y', '@scope/files')
    expect(local.plugins.upstream.servers).to.deep.equal({ files: { command: 'npx', args: ['-y', '@scope/files'] } })
  })

  it('copies the access of the existing routes, and reports a route that is open', async () => {
    const scope = { scope: 'mcp.tools' }
    const code = CODE_CONFIG.replace(
      'routes: {',
      "routes: {\n    '/mcp': { toolsets: 'main', authorize: { scope: 'mcp.tools' } },",
    )
    const routes = (...all: unknown[]) =>
      Object.fromEntries(
        all.map((authorize, index) => [
          `/${index}`,
          { toolsets: 'own', ...(authorize !== undefined && { authorize }) },
        ]),
      )
    const config = (...all: unknown[]) => JSON.stringify({ ...JSON.parse(JSON_CONFIG), routes: routes(...all) })
    for (const [file, text, expected] of [
      ['a.json', config(scope, scope), scope],
      ['a.yaml', config('admins'), 'admins'],
      ['a.mjs', code, scope],
      ['a.json', config(scope, 'admins'), undefined],
      ['a.json', config(scope, undefined), undefined],
      ['a.json', config(undefined), undefined],
    ] as const) {
      const folder = await makeFolder({ [file]: text })
      const context = testContext({ cwd: folder })
      await addCommand.run({ config: file }, ['upstream', 'near', 'localhost:3901/mcp'], context)
      const path = join(folder, file)
      const isCode = file === 'a.mjs'
      const written = isCode
        ? (await import(`${pathToFileURL(path)}?added`)).default
        : parse(readFileSync(path, 'utf8'))
      expect(written.routes['/near'].authorize, text).to.deep.equal(expected)
      expect(/is open.*authorize/.test(context.text.stdout), text).to.equal(expected === undefined)
    }
  })

  it('refuses taken and unusable names, and a missing server', async () => {
    for (const [words, text] of [
      [['own', 'https://a.example'], 'at toolsets.own'],
      [['a b', 'https://a.example'], 'not a valid toolset name'],
      [['a'], 'give the URL'],
      [['a', 'https://a.example', 'b'], 'unexpected "b" after the URL'],
    ] as const)
      expect(String(await rejectionOf(add(...words)))).to.contain(text)
  })

  it('creates a config in a folder without one', async () => {
    const folder = await makeFolder({ 'package.json': '{}' })
    const context = testContext({ cwd: folder })
    await addCommand.run({}, ['upstream', 'near', 'localhost:3901/mcp'], context)
    const written = readFileSync(join(folder, 'mcp.config.yaml'), 'utf8')
    expect(written).to.contain('transport-streamable: {}').and.contain('http://localhost:3901/mcp')
    expect(context.text.stdout).to.contain('Created mcp.config.yaml.')
  })
})
