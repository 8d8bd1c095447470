// store-sqlite configuration: secrets, option errors, warnings, reload and the required Node.js version.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { createHost } from '../../../core/create-host.ts'
import { type Config, defineTool } from '../../../core/index.ts'
import { testHost } from '../../../core/testing.ts'
import { storeSqlite } from '../../../plugins/store-sqlite/index.ts'
import { createTestLog, startHost, stopHosts } from '../../support/start-host.ts'
import { openStreamingSession } from '../../support/streaming-session.ts'
import { closeFiles, hasSqlite, newFolder } from './support/sqlite-files.ts'

const echo = defineTool({ name: 'echo', handler: () => 'echoed' })

const config = (options = {}, more: Partial<Config> = {}): Config => ({
  server: { name: 'sqlite-test', version: '1.0.0' },
  http: { port: 0 },
  secrets: ['a secret for tests, long enough to be one'],
  toolsets: { all: [echo] },
  routes: { '/': { toolsets: 'all' } },
  plugins: { 'transport-streamable': {}, 'store-sqlite': storeSqlite(options), health: {} },
  ...more,
})

/** What stops it; empty where nothing does. */
async function problemOf(given: Config, directory = newFolder()): Promise<string> {
  try {
    const host = await createHost(given, { directory, log: createTestLog(), purpose: 'inspect' })
    await host.close()
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

after(async () => {
  await stopHosts()
  await closeFiles()
})

if (hasSqlite) {
  describe('store-sqlite plugin', () => {
    it('requires configured secrets', async () => {
      const { secrets: _, ...bare } = config()
      const problem = await problemOf(bare)
      expect(problem)
        .to.include('the keys that sign their ids are temporary keys of this process')
        .and.to.include('openssl rand')
    })

    it('rejects invalid times and sizes with their path', async () => {
      expect(await problemOf(config({ ttl: '500ms' }))).to.include('ttl')
      expect(await problemOf(config({ maxSize: '10kb' }))).to.include('maxSize')
      expect(await problemOf(config({ ifDamaged: 'hope' }))).to.include('ifDamaged')
    })

    it('reports an impossible folder before startup', async () => {
      const folder = newFolder()
      writeFileSync(join(folder, 'notes'), '')
      expect(await problemOf(config({ file: './notes/inner/host.db' }), folder)).to.include('is not a folder')
      expect(await problemOf(config({ file: './not/yet/there/host.db' }), folder)).to.equal('')
      expect(await problemOf(config({ file: '.' }), folder)).to.include('is a folder')
      expect(readdirSync(folder)).to.deep.equal(['notes'])
    })

    it('writes a .gitignore into a folder that it creates, and none into an existing one', async () => {
      const folder = newFolder()
      const plugins = { 'transport-streamable': {}, 'store-sqlite': { file: './state/host.db' } }
      await startHost({ toolsets: { all: [echo] }, routes: { '/': { toolsets: 'all' } }, plugins }, folder)
      expect(readFileSync(join(folder, 'state/.gitignore'), 'utf8')).to.equal('*\n')
      expect(readdirSync(folder)).to.deep.equal(['state'])
    })

    it('keeps data in memory in test hosts', async () => {
      const folder = newFolder()
      const host = await testHost(config({ file: './host.db' }), { directory: folder })
      const session = await openStreamingSession(host.url)
      expect(await (await session.call('echo')).text()).to.include('echoed')
      await host.close()
      expect(readdirSync(folder)).to.deep.equal([])
    })

    it('passes sessions to the next host in the process, and reports readiness', async () => {
      const folder = newFolder()
      const plugins = { 'transport-streamable': {}, 'store-sqlite': {}, health: { details: 'anyone' as const } }
      const served = { toolsets: { all: [echo] }, routes: { '/': { toolsets: 'all' } }, plugins }
      const one = await startHost(served, folder)
      const session = await openStreamingSession(one.url)
      const other = await startHost({ ...served, http: { port: 0 } }, folder)
      const ready = (await (await fetch(new URL('/readyz', other.url))).json()) as { readonly checks: object }
      expect(ready.checks).to.include({ sqlite: true })
      await one.host.close({ grace: 0 })
      const answer = await fetch(other.url, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          Accept: 'application/json, text/event-stream',
          'Mcp-Session-Id': session.id,
          'MCP-Protocol-Version': '2025-11-25',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: {} } }),
      })
      expect(await answer.text()).to.include('echoed')
      expect(existsSync(join(folder, 'mcp-host.db'))).to.equal(true)
    })
  })
} else {
  describe('store-sqlite on Node.js without SQLite', () => {
    it('names the required Node.js version and the alternatives', async () => {
      const { 'store-sqlite': _, ...plugins } = config().plugins ?? {}
      for (const one of [config(), config({}, { plugins, store: { sqlite: {} } })]) {
        const problem = await problemOf(one)
        expect(problem).to.include('Node 22.13').and.to.include(process.versions.node)
        expect(problem).to.include('remove this setting to keep sessions in memory')
      }
    })
  })
}
