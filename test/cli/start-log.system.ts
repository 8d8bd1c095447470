// Tests the log of `start` and `check`.
import { expect } from 'chai'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { modern } from '../support/rpc.ts'
import { needsTerminals, startInTerminal } from './in-terminal.ts'
import { CORE, configText, startCli, stopAll } from './run-cli.ts'

after(stopAll)
after(removeFolders)

const FAILING = `defineTool({ name: 'fail', handler() { throw new Error('\\u001b[2J fell over') } })`

const TYPESCRIPT = {
  'mcp.config.ts': `import tool from './tools/stock.ts'
export default {
  server: { name: 'cli-test', version: '1.0.0' },
  http: { port: 0 },
  toolsets: { stock: [tool] },
  routes: { '/': { toolsets: 'stock' } },
  plugins: { 'transport-streamable': {} },
}
`,
  'tools/stock.ts': `import { defineTool } from '${CORE}'

interface Args {
  readonly sku: string
}

function look({ sku }: Args): never {
  throw new Error('no stock of ' + sku)
}

export default defineTool({ name: 'stock', handler: () => look({ sku: 'a' }) })
`,
}

describe('log of mcp-host start', () => {
  it('has the line of the TypeScript file, relative to the config, and clients receive nothing of it', async () => {
    const folder = await makeFolder({ ...TYPESCRIPT, 'sub/package.json': '{}' })
    const running = startCli(['start', '--config', '../mcp.config.ts'], `${folder}/sub`)
    const url = await running.listening()
    const { message } = await modern(url, 'tools/call', { name: 'stock' })
    expect(message.result.content).to.deep.equal([{ type: 'text', text: 'stock failed' }])
    const [line = ''] = await running.logged(/^.*a handler failed.*$/m)
    const { err } = JSON.parse(line)
    expect(err.at).to.equal('tools/stock.ts:8:9')
    expect(err.stack).to.match(/^Error: no stock of a\n {4}at look \(tools\/stock\.ts:8:9\)\n {4}at .*stock\.ts:11:/)
    expect(err.stack).not.to.match(/node:|dispatch/)
  })

  it('is readable at a terminal, without control characters', async function () {
    needsTerminals(this)
    const folder = await makeFolder({ 'mcp.config.mjs': configText({ tool: FAILING }) })
    const running = startInTerminal(['start'], folder, { NO_COLOR: '1' })
    await modern(await running.listening(), 'tools/call', { name: 'fail' })
    const [text] = await running.printed(/ERROR: MH1601 a handler failed[\s\S]*fell over[\s\S]*--log-level debug/)
    expect(text).to.contain('\\u001b[2J fell over').and.not.to.contain('\u001b')
  })

  it('is JSON at a terminal and readable elsewhere on request, also of workers', async function () {
    const folder = await makeFolder({
      'mcp.config.mjs': configText({ tool: FAILING, routes: "{ '/': { toolsets: ['second'], stateless: true } }" }),
    })
    const running = startCli(['start', '--workers', '1', '--log-format', 'pretty', '--log-level', 'error'], folder)
    await modern(await running.listening(), 'tools/call', { name: 'fail' })
    const [text] = await running.logged(/^\[.*ERROR \(\d+\): MH1601 a handler failed/m)
    expect(text).not.to.contain('{')
    needsTerminals(this)
    const inTerminal = startInTerminal(['start', '--log-format', 'json'], folder)
    await modern(await inTerminal.listening(), 'tools/call', { name: 'fail' })
    await inTerminal.printed(/\{"level":50,.*a handler failed/)
  })
})
