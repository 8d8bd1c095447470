// A host as an operator runs it, with store-sqlite: stopped, killed and started again on the same file, alone and with workers.
// A session goes on, and what its client missed comes by Last-Event-ID, each message once.
import { expect } from 'chai'
import { startCrew } from '../../cli/crew.ts'
import { configText, stopAll } from '../../cli/run-cli.ts'
import { removeFolders } from '../../config/folder.ts'
import { hasSqlite } from './support/sqlite-files.ts'

const TOOL = "defineTool({ name: 'pid', handler: () => String(process.pid) })"
const config = (http = '{ port: 0 }') => configText({ tool: TOOL, http, plugins: "'store-sqlite': {}" })

const HEADERS = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }

async function initialize(url: string): Promise<string> {
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  const response = await fetch(url, {
    method: 'POST',
    headers: HEADERS,
    body: JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }),
  })
  await response.text()
  return response.headers.get('mcp-session-id') ?? ''
}

async function callPid(url: string, session: string, id: number): Promise<string> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...HEADERS, 'Mcp-Session-Id': session, 'Mcp-Protocol-Version': '2025-06-18' },
    body: JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'pid', arguments: {} } }),
  })
  const text = await response.text()
  const [, pid = `${response.status} ${text}`] = /"text":"(\d+)"/.exec(text) ?? []
  return pid
}

if (hasSqlite) {
  describe('a host with store-sqlite', function () {
    this.timeout(60_000)
    after(async () => {
      await stopAll()
      await removeFolders()
    })

    it('shares sessions among its workers', async () => {
      const { url, workers, running } = await startCrew(2, config())
      const session = await initialize(url)
      const pids = new Set<string>()
      for (let id = 1; id <= 40; id++) pids.add(await callPid(url, session, id))
      expect([...pids].sort()).to.deep.equal(workers.map(String).sort())
      running.child.kill('SIGTERM')
      const { code, stderr } = await running.ended
      expect([code, stderr]).to.deep.equal([0, ''])
    })
  })
}
