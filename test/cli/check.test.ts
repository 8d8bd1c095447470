// `mcp-host check` with what `start` would have: the environment of a file, and several processes.
import { createServer } from 'node:http'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { expect } from 'chai'
import { reportOn } from '../../cli/check.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { freePort } from '../support/free-port.ts'
import { runCli, stopAll } from './run-cli.ts'

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
  it('reads the environment of files, and says where one is wrong', async () => {
    const folder = await makeFolder({
      ...configOf({ metrics: {} }),
      '.env': 'CHECKED_PORT=9464\n',
      broken: 'no variable',
    })
    const plain = await runCli(['check'], folder)
    expect(plain.code, plain.stderr).to.equal(0)
    const { code, stderr } = await runCli(['check', '--env-file', '.env'], folder)
    expect(code).to.equal(2)
    expect(stderr).to.match(/^mcp-host: mcp\.config\.mjs:\d+: plugins\.metrics\.port: 9464 is the host's own port/)
    const broken = await reportOn({ 'env-file': [join(folder, 'broken')] }, folder)
    expect(broken.ok).to.equal(false)
    expect(messagesOf(broken.problems).join()).to.match(/broken:1: no variable/)
  })

  it('tells all that several processes lack in one round', async () => {
    const folder = await makeFolder(configOf({ 'rate-limit': { user: '120/1m' } }, ''))
    expect((await reportOn({}, folder)).ok).to.equal(true)
    const { problems, exitCode } = await reportOn({ workers: '2' }, folder)
    expect(exitCode).to.equal(2)
    const told = messagesOf(problems).join('\n')
    expect(told).to.include("callers would get up to 2 times what is written; write store: 'redis'")
    expect(told).to.include("the sessions of routes['/']").and.include('the keys that sign session ids')
    expect(problems).to.have.length(2)
    expect(messagesOf((await reportOn({ workers: 'some' }, folder)).problems).join()).to.match(/--workers some/)
  })

  it('knows that workers reach each other by what started them', async () => {
    const listening = configOf({})['mcp.config.mjs'].replace(
      "toolsets: 'all' }",
      "toolsets: 'all', stateless: true, listen: true }",
    )
    const report = await reportOn({ workers: '2' }, await makeFolder({ 'mcp.config.mjs': listening }))
    expect(messagesOf(report.problems)).to.deep.equal([])
    if (!isBuiltin('node:sqlite')) return
    const kept = await reportOn({ workers: '2' }, await makeFolder(configOf({ 'store-sqlite': {} })))
    expect(messagesOf(kept.problems)).to.deep.equal([])
  })

  it('does not say that nothing provides what a plugin with a mistake would', async () => {
    const redis = { 'cluster-redis': { url: 'redis://127.0.0.1:1', cluster: ['redis://127.0.0.1:1'] } }
    const { problems } = await reportOn({ workers: '2' }, await makeFolder(configOf(redis)))
    expect(messagesOf(problems)).to.have.length(1)
    expect(messagesOf(problems).join()).not.to.include('each would keep to itself')
  })

  it('warns of an audit without a key', async () => {
    const { ok, warnings } = await reportOn({}, await makeFolder(configOf({ audit: {} }, '')))
    const found = warnings.find(({ message }) => message.includes('the audit has no key'))
    expect({ ok, path: found?.path }).to.deep.equal({ ok: true, path: 'plugins.audit' })
  })
})

describe('mcp-host start --workers', () => {
  it('names the plugin whose port is taken, and the line', async () => {
    const port = await freePort()
    const taken = createServer().listen(port, '127.0.0.1')
    try {
      const stateless = configOf({ metrics: { port } })['mcp.config.mjs'].replace(
        "toolsets: 'all'",
        '$&, stateless: true',
      )
      const folder = await makeFolder({ 'mcp.config.mjs': stateless })
      const { code, stderr } = await runCli(['start', '--workers', '2'], folder)
      expect(code).to.equal(1)
      expect(stderr).to.match(
        new RegExp(
          `^mcp-host: mcp\\.config\\.mjs:\\d+: plugins\\.metrics\\.port: port ${port} of 127\\.0\\.0\\.1 is in use; [^\\n]*\\n$`,
        ),
      )
    } finally {
      taken.close()
    }
  })
})
