// The raw bytes of the SQLite file: no credentials, and no data of ended sessions.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { openSession } from '../../support/session-client.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { closeFiles, hasSqlite, newFolder } from './support/sqlite-files.ts'

const CREDENTIALS = {
  Authorization: 'Bearer planted-authorization',
  'Proxy-Authorization': 'Basic planted-proxy-authorization',
  Cookie: 'a=planted-cookie',
  'X-Api-Key': 'planted-api-key',
  'X-Forwarded-Access-Token': 'planted-access-token',
  'Cf-Access-Jwt-Assertion': 'planted-assertion',
  'X-Client-Secret': 'planted-client-secret',
  'X-Any': 'Bearer planted-bearer',
}
const PLAIN = { 'X-Tenant': 'kept-tenant', 'X-Auth-Request-Email': 'kept-email' }
const SIZES = [20, 3_000, 30_000]
const messageOf = (size: number) => `message-of-${size}-${'m'.repeat(size)}`

const speak = defineTool({
  name: 'speak',
  input: { type: 'object', properties: { size: { type: 'number' } } },
  async handler({ size }: { size: number }, ctx) {
    await ctx.progress(1, 2, messageOf(size))
    return 'said'
  },
})

/** All of the folder. */
const bytesIn = (folder: string) =>
  readdirSync(folder)
    .map(name => readFileSync(join(folder, name), 'latin1'))
    .join('\n')

const foundOf = (texts: readonly string[], bytes: string) => texts.filter(text => bytes.includes(text))

const textsOf = (headers: object) => Object.values(headers).map(value => value.replace(/^.*[ =]/, ''))

if (hasSqlite) {
  describe('store-sqlite: data in the file', () => {
    after(async () => {
      await stopHosts()
      await closeFiles()
    })

    it('contains no credentials, and no data of ended sessions after the host closes', async () => {
      const folder = newFolder()
      const { url, host } = await startHost(
        {
          toolsets: { all: [speak] },
          routes: { '/': { toolsets: 'all' } },
          plugins: { 'transport-streamable': {}, 'store-sqlite': { file: './host.db' } },
        },
        folder,
      )
      const capabilities = { experimental: { named: { text: 'capability-of-ann' } } }
      const sessions = []
      for (let index = 0; index < 10; index++) {
        sessions.push(await openSession(url, { headers: { ...CREDENTIALS, ...PLAIN }, capabilities }))
      }
      for (const session of sessions) {
        for (const size of SIZES) await (await session.call('speak', { size })).rest()
      }
      const traces = [...textsOf(PLAIN), 'capability-of-ann', ...SIZES.map(size => messageOf(size).slice(0, 25))]
      const running = bytesIn(folder)
      for (const session of sessions) expect((await session.end()).status).to.equal(204)
      await host.close({ grace: 0 })
      const closed = bytesIn(folder)
      const planted = textsOf(CREDENTIALS)
      expect(foundOf(planted, running + closed)).to.deep.equal([])
      expect(foundOf(traces, running)).to.deep.equal(traces)
      expect(foundOf(traces, closed)).to.deep.equal([])
    })
  })
}
