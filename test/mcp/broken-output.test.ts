// Tests that the log locates the tool definition if a handler result violates the output schema.
import { expect } from 'chai'
import { describeFailure } from '../../core/http/describe-thrown.ts'
import { defineTool } from '../../core/index.ts'
import { removeFolders } from '../config/folder.ts'
import { startReloading, stopReloading } from '../support/reloading-host.ts'
import { modern } from '../support/rpc.ts'
import { type LogLine, startHost, stopHosts } from '../support/start-host.ts'

after(async () => {
  await Promise.all([stopReloading(), stopHosts()])
  await removeFolders()
})

const OUTPUT = "output: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] }"
const FILES = {
  'mcp.config.ts': `import { defineConfig, defineTool } from HERE
export default defineConfig({
  server: { name: 'broken', version: '1.0.0' },
  http: { port: 0 },
  secrets: ['a secret for tests, long enough to be one'],
  toolsets: {
    files: './tools.ts',
    inline: [
      defineTool({
        name: 'inline',
        ${OUTPUT},
        handler: () => ({ b: 1 }),
      }),
    ],
  },
  routes: { '/': { toolsets: ['files', 'inline'] } },
  plugins: { 'transport-streamable': {} },
})
`,
  'tools.ts': `import { defineTool } from HERE

export const filed = defineTool({
  name: 'filed',
  ${OUTPUT},
  handler: async () => ({ b: 1 }),
})
`,
}

const failuresIn = (log: readonly LogLine[], directory: string) =>
  log.filter(({ level }) => level === 'error').map(({ err }) => describeFailure(err, { whole: false, directory }))

describe('Output schema violation in the log', () => {
  it('includes the location of the tool in a module or the config, without host frames', async () => {
    const { url, folder, log } = await startReloading(FILES)
    for (const name of ['filed', 'inline']) await modern(url, 'tools/call', { name })
    const told = failuresIn(log, folder).map(({ at, stack, hidden }) => [at, stack?.split('\n').slice(1), hidden])
    expect(told).to.deep.equal([
      ['tools.ts:5:1', ['    at filed (tools.ts:5:1)'], undefined],
      ['mcp.config.ts:11:1', ['    at inline (mcp.config.ts:11:1)'], undefined],
    ])
  })

  it('has no stack frame if the file of the tool is unknown', async () => {
    const odd = defineTool({ name: 'odd', output: { type: 'number' }, handler: () => 'text' })
    const { url, log } = await startHost({ toolsets: { all: [odd] }, routes: { '/': { toolsets: 'all' } } })
    await modern(url, 'tools/call', { name: 'odd' })
    const [failure] = failuresIn(log, process.cwd())
    expect(failure?.message).to.match(/^odd broke its output schema: \(result\): must be number/)
    expect(failure).not.to.have.any.keys('at', 'stack', 'hidden')
  })
})
