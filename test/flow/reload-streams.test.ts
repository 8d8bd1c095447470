// Tests config reload with open streams of every kind, including HTTP+SSE.
import { expect } from 'chai'
import { removeFolders } from '../config/folder.ts'
import { startReloading, stopReloading } from '../support/reloading-host.ts'
import { listen, nextMessage, openSession } from '../support/session-client.ts'
import { openSseSession } from '../support/sse-client.ts'

after(async () => {
  await stopReloading()
  await removeFolders()
})

const NOTES = `import { defineResource, defineTool } from HERE
export const open = defineResource({ uri: 'note://open', name: 'open', handler: () => 'open' })
export const shut = defineResource({ uri: 'note://shut', name: 'shut', handler: () => 'shut' })
export const say = defineTool({ name: 'say', handler: () => 'one' })
`
const CONFIG = `export default {
  server: { name: 'reloaded', version: '1.0.0' }, http: { port: 0 },
  toolsets: { notes: './notes.ts' },
  routes: { '/': { toolsets: 'notes' } },
  plugins: { 'transport-streamable': {}, 'transport-sse': {}, 'tool-policy': { policies: { staff: { scope: 'staff' } } } },
}`
const URIS = ['note://shut', 'note://open']

describe('config reload: open streams', () => {
  it('notifies HTTP+SSE streams of list changes and serves the new version to their sessions', async () => {
    const { url, edit, reload } = await startReloading({ 'mcp.config.ts': CONFIG, 'notes.ts': NOTES })
    const client = await openSseSession(url)
    const texts: string[] = []
    for (const [before, after] of [
      ["'one'", "'two'"],
      ["'two'", "'three'"],
    ] as const) {
      await edit('notes.ts', before, after)
      await reload()
      texts.push((await client.request('tools/call', { name: 'say' })).result.content[0].text)
    }
    expect(texts).to.deep.equal(['two', 'three'])
    await edit('notes.ts', "name: 'say'", "name: 'tell'")
    expect(await reload()).to.deep.equal({ restart: [], taken: ['toolsets.notes'], told: 1 })
    expect((await client.next()).method).to.equal('notifications/tools/list_changed')
    expect((await client.request('tools/call', { name: 'tell' })).result.content[0].text).to.equal('three')
  })

  it('stops notifications that a stricter policy denies and keeps the others', async () => {
    const { host, url, edit, reload } = await startReloading({ 'mcp.config.ts': CONFIG, 'notes.ts': NOTES })
    const session = await openSession(url)
    const older = await openSseSession(url)
    for (const uri of URIS) {
      await session.request('resources/subscribe', { uri })
      await older.request('resources/subscribe', { uri })
    }
    const listening = await listen(url, { resourceSubscriptions: URIS })
    await nextMessage(listening)
    const streams = [await session.get(), older.stream, listening]
    /** The URIs that each stream hears of, until a change of the last one came. */
    async function hearOf(): Promise<string[][]> {
      for (const uri of URIS) host.runtime.resourceUpdated(uri)
      return Promise.all(
        streams.map(async stream => {
          const uris: string[] = []
          while (uris.at(-1) !== URIS.at(-1)) {
            const message = await nextMessage(stream)
            if (!message) throw new Error(`a stream ended after ${uris.join(', ')}`)
            if (message.method === 'notifications/resources/updated') uris.push(message.params.uri)
          }
          return uris
        }),
      )
    }
    expect(await hearOf()).to.deep.equal([URIS, URIS, URIS])
    await edit('mcp.config.ts', "'tool-policy': {", "'tool-policy': { rules: { 'resource:note://shut': 'staff' },")
    expect((await reload()).taken).to.deep.equal(["plugins['tool-policy']"])
    expect(await hearOf()).to.deep.equal([['note://open'], ['note://open'], ['note://open']])
    await edit('mcp.config.ts', "rules: { 'resource:note://shut': 'staff' },", '')
    await reload()
    expect(await hearOf()).to.deep.equal([URIS, URIS, URIS])
  })
})
