import { isBuiltin } from 'node:module'
import { basename, join } from 'node:path'
import { expect } from 'chai'
import { reportOn } from '../../cli/check.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { CORE, configText, runCli, stopAll } from './in-process.ts'

after(removeFolders)
after(stopAll)

const configOf = (plugins: object, secret = 'a secret for tests, long enough to be one') => ({
  'mcp.config.mjs': `export default {
  server: { name: 'checked', version: '1.0.0' },
  http: { port: Number(process.env.CHECKED_PORT ?? 0) },
  secrets: [${JSON.stringify(secret)}].filter(Boolean),
  toolsets: { all: [] },
  routes: { '/': { toolsets: 'all' } },
  plugins: ${JSON.stringify({ 'transport-streamable': {}, ...plugins }, undefined, 2)},
}
`,
})
const messagesOf = (told: readonly { message: string }[]) => told.map(({ message }) => message)

describe('mcp-host check', () => {
  it('reports everything that several processes need in one run', async () => {
    const folder = await makeFolder(configOf({ 'rate-limit': { user: '120/1m' }, 'dev-auth-server': {} }, ''))
    expect((await reportOn({}, { env: {}, cwd: folder })).ok).to.equal(true)
    const { problems, exitCode } = await reportOn({ workers: '2' }, { env: {}, cwd: folder })
    expect(exitCode).to.equal(2)
    const told = messagesOf(problems).join('\n')
    expect(told).to.include('start without --workers').and.not.include('rate-limit')
    expect(told).to.include('enable store-sqlite or store-postgres or cluster-redis')
    expect(told)
      .to.match(/routes\['\/'\]/)
      .and.include('own keys for session ids')
    expect(problems).to.have.length(2)
    expect(messagesOf((await reportOn({ workers: 'some' }, { env: {}, cwd: folder })).problems).join()).to.match(
      /--workers some/,
    )
  })

  it('reports each problem with its file and line, and with its path if it has one', async () => {
    const folder = await makeFolder(configOf({ 'access-log': { destination: 5 }, audit: { unknown: true } }))
    const { problems } = await reportOn({}, { env: {}, cwd: folder })
    const places = problems.map(({ file, line, path }) => [basename(file ?? ''), line, path])
    expect(places).to.deep.equal([
      ['mcp.config.mjs', 10, "plugins['access-log'].destination"],
      ['mcp.config.mjs', 13, 'plugins.audit.unknown'],
    ])
    const broken = await makeFolder({ 'mcp.config.mjs': 'export default {' })
    const [unreadable, ...others] = (await reportOn({}, { env: {}, cwd: broken })).problems
    expect(others).to.deep.equal([])
    expect(unreadable).to.include({ severity: 'error' }).and.not.have.property('path')
  })

  it('reports programs, folders and scripts of upstream servers that do not exist', async () => {
    const servers = {
      program: { command: 'no-such-program-of-this-test' },
      path: { command: ['./bin/server', '--stdio'] },
      spaces: { command: 'node server.js' },
      script: { command: ['node', 'server.js'] },
      argument: { command: 'node', args: ['server.js'] },
      folder: { command: 'node', cwd: 'gone' },
      fine: { command: ['node', '-e', '1'], cwd: '.' },
    }
    const folder = await makeFolder(configOf({ upstream: { servers } }))
    const { ok, warnings } = await reportOn({}, { env: {}, cwd: folder })
    expect(ok).to.equal(true)
    const missing = warnings.filter(({ code }) => code === 'MH2943')
    expect(
      missing.map(({ message }) => message.replace('plugins.upstream.servers.', '').split(/: (?:cannot find )?the /)),
    ).to.deep.equal([
      ['program.command', 'program no-such-program-of-this-test in PATH; install it, or correct the command'],
      ['path.command', `program ${join(folder, 'bin/server')}; install it, or correct the command`],
      [
        'spaces.command',
        'program node server.js in PATH; commands are not split at spaces: write a list, such as [node, server.js]',
      ],
      ['script.command', `file ${join(folder, 'server.js')} does not exist`],
      ['argument.args', `file ${join(folder, 'server.js')} does not exist`],
      ['folder.cwd', `folder ${join(folder, 'gone')} does not exist`],
    ])
  })

  describe('reports in one run, next to', () => {
    const toolModule = `import { defineTool } from '${new URL('../../core/index.ts', import.meta.url).href}'
const TOOL = (name, input) => defineTool({ name, ...(input && { input }), handler: () => 'x' })
`
    const withMistakes = (plugins: string, more = '') => ({
      'mcp.config.mjs': `${toolModule}export default {
  server: { name: 'checked', version: '1.0.0' },
  toolsets: { a: [TOOL('one'), TOOL('one'), TOOL('two', { type: 'objekt' })] },
  routes: { '/': { toolsets: 'al' }, '/x/:id': { toolsets: 'a' }, '/x/:other': { toolsets: 'a' } },
  plugins: { 'transport-streamable': {}, ${plugins} },
  ${more}
}
`,
    })
    const expected = [
      /no toolset "al"/,
      /\/x\/:id.*\/x\/:other|\/x\/:other.*\/x\/:id/,
      /objekt/,
      /two tools are called "one"/,
    ]

    for (const [what, plugins, more, own] of [
      ['an unknown plugin option', "health: { pth: '/up' }", '', [/did you mean "path"/]],
      ['an unknown plugin', 'helth: {}', 'wibble: 1,', [/did you mean "health"/, /unknown option/]],
      ['a package that is not installed', "'no-such-plugin-anywhere': {}", '', [/no-such-plugin-anywhere/]],
      ['a wrong value of http', '', "http: { port: '80' },", [/wrong value/]],
      [
        'a plugin that fails to set up',
        "cors: { policies: { a: { origins: ['*', 'https://a.example'] } } }",
        '',
        [/"\*" cannot be combined/],
      ],
    ] as const) {
      it(what, async () => {
        const folder = await makeFolder(withMistakes(plugins, more))
        const { problems } = await reportOn({}, { env: {}, cwd: folder })
        const told = messagesOf(problems)
        for (const pattern of [...expected, ...own])
          expect(
            told.filter(text => pattern.test(text)),
            `${pattern}`,
          ).to.have.length(1)
        expect(told).to.have.length(expected.length + own.length)
      })
    }

    it('a missing server', async () => {
      const [name, text] = Object.entries(withMistakes(''))[0] as [string, string]
      const { problems } = await reportOn(
        {},
        { env: {}, cwd: await makeFolder({ [name]: text.replace(/^ {2}server.*\n/m, '') }) },
      )
      expect(problems).to.have.length(expected.length + 1)
    })
  })

  it('finds toolsets in packages, as `import` does', async () => {
    const tool = `import { defineTool } from '${CORE}'\nexport const NAME = defineTool({ name: 'NAME', handler: () => '' })`
    const folder = await makeFolder({
      'mcp.config.yaml': `server: { name: a, version: '1' }
toolsets: { a: ['@acme/tools', '@acme/tools/more', plain-tools], typo: '@acme/tols' }
routes: { /: { toolsets: [a, typo] } }
plugins: { transport-streamable: {} }
`,
      'node_modules/@acme/tools/package.json':
        '{"name":"@acme/tools","type":"module","exports":{".":"./index.js","./more":"./more.js"}}',
      'node_modules/@acme/tools/index.js': tool.replaceAll('NAME', 'one'),
      'node_modules/@acme/tools/more.js': tool.replaceAll('NAME', 'two'),
      'node_modules/plain-tools/package.json': '{"name":"plain-tools","type":"module","main":"index.js"}',
      'node_modules/plain-tools/index.js': tool.replaceAll('NAME', 'three'),
    })
    const { problems } = await reportOn({}, { env: {}, cwd: folder })
    expect(messagesOf(problems).map(text => text.replace(`${folder}/`, ''))).to.deep.equal([
      'toolsets.typo: there is no package @acme/tols; run: npm install @acme/tols',
    ])
  })

  it('accepts the change bus of workers', async () => {
    const listening = configOf({})['mcp.config.mjs'].replace(
      "toolsets: 'all' }",
      "toolsets: 'all', stateless: true, listen: true }",
    )
    const report = await reportOn({ workers: '2' }, { env: {}, cwd: await makeFolder({ 'mcp.config.mjs': listening }) })
    expect(messagesOf(report.problems)).to.deep.equal([])
    if (!isBuiltin('node:sqlite')) return
    const kept = await reportOn({ workers: '2' }, { env: {}, cwd: await makeFolder(configOf({ 'store-sqlite': {} })) })
    expect(messagesOf(kept.problems)).to.deep.equal([])
  })

  it('does not report missing services that an invalid plugin would provide', async () => {
    const redis = { 'cluster-redis': { url: 'redis://127.0.0.1:1', cluster: ['redis://127.0.0.1:1'] } }
    const { problems } = await reportOn({ workers: '2' }, { env: {}, cwd: await makeFolder(configOf(redis)) })
    expect(messagesOf(problems)).to.have.length(1)
    expect(messagesOf(problems).join()).not.to.include('would not share their state')
  })

  it('warns of an audit log without a key', async () => {
    const { ok, warnings } = await reportOn({}, { env: {}, cwd: await makeFolder(configOf({ audit: {} }, '')) })
    const found = warnings.find(({ message }) => message.includes('the audit has no key'))
    expect({ ok, path: found?.path }).to.deep.equal({ ok: true, path: 'plugins.audit' })
  })

  it('prints its warnings below the routes', async () => {
    const folder = await makeFolder({ 'mcp.config.mjs': configText({ secrets: '[]' }) })
    const { code, stdout, stderr } = await runCli(['check'], folder, { MCP_HOST_SECRETS: '' })
    expect(stdout).to.match(
      /^config mcp\.config\.mjs\n\nRoute .*\n\/ .*\n\nWarnings\n {2}MH1031 .*\n\nThe config is valid\.\n$/,
    )
    expect([code, stderr]).to.deep.equal([0, ''])
  })
})
