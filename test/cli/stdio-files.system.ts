// Tests `mcp-host stdio` with plugins that have files and ports: it writes records and opens no port, and stdout
// contains only protocol messages.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect } from 'chai'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { freePort } from '../support/free-port.ts'
import { createMeta } from '../support/rpc.ts'
import { CORE, startCli, stopAll } from './run-cli.ts'

after(removeFolders)
after(stopAll)

it('mcp-host stdio writes its records, and opens no port for metrics', async () => {
  const port = await freePort()
  const taken = createServer().listen(port, '127.0.0.1')
  const folder = await makeFolder({
    'mcp.config.mjs': `import { defineTool } from '${CORE}'
export default {
  server: { name: 'stdio-files', version: '1.0.0' },
  secrets: ['a secret for tests, long enough to be one'],
  toolsets: { all: [defineTool({ name: 'say', handler: () => 'said' })] },
  routes: { '/': { toolsets: 'all' } },
  plugins: { audit: {}, 'access-log': {}, metrics: { port: ${port} } },
}
`,
  })
  try {
    const { child, printed, ended } = startCli(['stdio'], folder)
    const params = { name: 'say', arguments: {}, _meta: createMeta() }
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })}\n`)
    await printed(/said/)
    child.stdin.end()
    const { code, stdout, stderr } = await ended
    expect(code, stderr).to.equal(0)
    expect(
      stdout
        .trim()
        .split('\n')
        .map(line => JSON.parse(line).id),
    ).to.deep.equal([1])
    const lines = stderr
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(lines.some(({ code }) => code === 'MH2603')).to.equal(true)
    expect(lines.some(({ method, msg }) => method === 'tools/call' && msg === undefined)).to.equal(true)
    expect(await readFile(join(folder, 'audit.1.jsonl'), 'utf8')).to.include('"say"')
  } finally {
    taken.close()
  }
})
