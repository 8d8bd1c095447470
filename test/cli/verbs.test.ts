// The verbs beside `start`, what the CLI says of itself, and what it does not know.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { schemaText } from '../../cli/schema.ts'
import { makeFolder, removeFolders } from '../core/config/folder.ts'
import { configText, ROOT, runCli, stopAll } from './run-cli.ts'

after(removeFolders)
after(stopAll)

const USAGE = /^Usage: mcp-host <verb> \[options\]$/m

describe('mcp-host check', () => {
  it('prints what the config serves, listens nowhere, and exits 0', async () => {
    const busy = createServer().listen(0, '127.0.0.1')
    await once(busy, 'listening')
    const { port } = busy.address() as AddressInfo
    const folder = await makeFolder({ 'mcp.config.mjs': configText({ http: `{ port: ${port} }` }) })
    const { code, stdout, stderr } = await runCli(['check'], folder)
    busy.close()
    expect(stdout).to.match(
      /^route +toolsets +protocol revisions +who may call\n\/ +first, second +2026-07-28 and older, to 2024-11-05 +anyone\n/,
    )
    expect(stdout).to.match(/\n\nThe config is fine\.\n$/)
    expect(stderr).to.equal('')
    expect(code).to.equal(0)
  })

  it('tells the problems of the file that --config names, and exits 2', async () => {
    const folder = await makeFolder({ 'other.json': '{"server":{"name":"a"},"toolsets":{},"routes":{}}' })
    const { code, stdout, stderr } = await runCli(['check', '--config', 'other.json'], folder)
    expect(stderr).to.match(/^mcp-host: The config has 2 problems\.\n\nother\.json:1 /)
    expect(stdout).to.equal('')
    expect(code).to.equal(2)
  })
})

describe('mcp-host schema', () => {
  it('prints the config schema with every built-in plugin', async () => {
    const { code, stdout } = await runCli(['schema'], await makeFolder({}))
    const { properties } = JSON.parse(stdout)
    expect(properties.plugins.properties).to.include.keys('transport-streamable', 'health')
    expect(code).to.equal(0)
  })

  it('--write writes it to a file and prints nothing', async () => {
    const folder = await makeFolder({})
    const { code, stdout } = await runCli(['schema', '--write', 'schema.json'], folder)
    expect(await readFile(join(folder, 'schema.json'), 'utf8')).to.equal(schemaText())
    expect(stdout).to.equal('')
    expect(code).to.equal(0)
  })

  it('says in one line that the file cannot be written', async () => {
    const { code, stderr } = await runCli(['schema', '--write', 'none/schema.json'], await makeFolder({}))
    expect(stderr).to.match(/^mcp-host: none\/schema\.json cannot be written: ENOENT.*\n$/)
    expect(code).to.equal(1)
  })

  it('made config.schema.json, which is not stale (npm run schema)', () => {
    expect(readFileSync(join(ROOT, 'config.schema.json'), 'utf8')).to.equal(schemaText())
  })
})

describe('mcp-host', () => {
  it('--version prints the version of package.json', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const { code, stdout } = await runCli(['--version'], await makeFolder({}))
    expect([stdout, code]).to.deep.equal([`${version}\n`, 0])
  })

  it('--help, as no verb at all, prints the usage with every verb', async () => {
    const folder = await makeFolder({})
    const [asked, bare] = await Promise.all([runCli(['start', '--help'], folder), runCli([], folder)])
    expect(asked.stdout).to.match(USAGE)
    for (const verb of ['start', 'check', 'schema']) expect(asked.stdout).to.match(new RegExp(`^ {2}${verb} `, 'm'))
    expect([asked.code, asked.stderr]).to.deep.equal([0, ''])
    expect(bare).to.deep.equal(asked)
  })

  for (const [what, args, message] of [
    ['an unknown verb', ['constructor'], 'there is no verb "constructor"'],
    ['an unknown option', ['start', '--prot', '1'], "Unknown option '--prot'"],
    ['a second verb', ['start', 'check'], 'unexpected "check"'],
  ] as const) {
    it(`answers ${what} with the usage on stderr, and exits 2`, async () => {
      const { code, stdout, stderr } = await runCli(args, await makeFolder({ 'mcp.config.mjs': configText() }))
      expect(stderr.startsWith(`mcp-host: ${message}`), stderr).to.equal(true)
      expect(stderr).to.match(USAGE)
      expect(stdout).to.equal('')
      expect(code).to.equal(2)
    })
  }
})
