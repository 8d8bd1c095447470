// Tests modules that exit the process or never finish during loading, at startup and at reload.
import { expect } from 'chai'
import { loadHost } from '../../core/create-host.ts'
import { errorText } from '../../core/plugin.ts'
import { runCli } from '../cli/run-cli.ts'
import { eventually } from '../support/eventually.ts'
import { startReloading, stopReloading } from '../support/reloading-host.ts'
import { modern } from '../support/rpc.ts'
import { createTestLog } from '../support/start-host.ts'
import { makeFolder, removeFolders } from './folder.ts'

after(async () => {
  await stopReloading()
  await removeFolders()
})

const CONFIG = `export default {
  server: { name: 'loaded', version: '1.0.0' }, http: { port: 0 },
  toolsets: { all: './tools/*.ts' }, routes: { '/': { toolsets: 'all' } }, plugins: { 'transport-streamable': {} },
}`
const SAY = "import { defineTool } from HERE\nexport const say = defineTool({ name: 'say', handler: () => 'one' })\n"
const HANGS = 'await new Promise(() => {})\n'
const files = {
  'mcp.config.ts': CONFIG,
  'tools/say.ts': SAY,
  'tools/word.ts': `import './part.ts'\n${SAY.replaceAll('say', 'word')}`,
  'tools/part.ts': SAY.replaceAll('say', 'part'),
}

const refusal = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'taken',
    (error: unknown) => errorText(error),
  )

describe('Module that calls process.exit while loading', () => {
  for (const [what, file, text] of [
    ['a tool', 'tools/say.ts', 'process.exit(0)'],
    ['an import of a tool', 'tools/part.ts', '\nprocess.exit(3)'],
    ['after it waited', 'tools/say.ts', 'await new Promise(go => setTimeout(go, 1))\nprocess.exit()'],
    ['the config', 'mcp.config.ts', 'process.exit(7)'],
    ['in CommonJS', 'tools/old.cjs', 'process.exit(1)'],
  ] as const) {
    it(`is reported with its location, and the process continues: ${what}`, async () => {
      const globbed = CONFIG.replace('*.ts', '*.{ts,cjs}')
      const folder = await makeFolder({ ...files, 'mcp.config.ts': globbed, [file]: text })
      const told = await refusal(loadHost({ cwd: folder }, createTestLog()))
      expect(told).to.match(/calls process\.exit\(\d?/)
      expect(told).to.match(new RegExp(`${file.replace('.', '\\.')}:\\d`))
    })
  }

  it('fails the reload, keeps the previous version active, and can exit the process later', async () => {
    const { url, write, reload } = await startReloading(files)
    await write('tools/say.ts', `process.exit(7)\n${SAY}`)
    expect(await refusal(reload())).to.match(/process\.exit\(7\)/)
    const { message } = await modern(url, 'tools/call', { name: 'say' })
    expect(message.result.content[0].text).to.equal('one')
    const ended: unknown[] = []
    const real = process.exit
    process.exit = ((code: unknown) => ended.push(code)) as never
    try {
      await write('tools/say.ts', `setTimeout(() => process.exit(5), 20)\n${SAY}`)
      await reload()
      await eventually('the timer that a tool left', () => ended.length > 0)
    } finally {
      process.exit = real
    }
    expect(ended).to.deep.equal([5])
  })
})

describe('Module that never finishes loading', () => {
  it('fails `check` immediately in text and JSON output, with the module name', async () => {
    const folder = await makeFolder({ 'mcp.config.ts': CONFIG, 'tools/say.ts': HANGS })
    const json = await runCli(['check', '--format', 'json'], folder)
    const [problem] = JSON.parse(json.stdout).problems
    expect(problem.message).to.include('it never finishes').and.include('`await`')
    expect(JSON.stringify(problem)).to.include('tools/say.ts').and.include('toolsets.all')
    const config = await runCli(['check'], await makeFolder({ 'mcp.config.mjs': HANGS }))
    expect(config.stderr).to.match(/^mcp-host: error \w+: mcp\.config\.mjs: cannot be loaded: it never finishes: /)
    expect([json.code, config.code, config.stdout]).to.deep.equal([2, 2, ''])
  })
})
