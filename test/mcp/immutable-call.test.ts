// Tests that the call object of `onCall` hooks is immutable and the same for the whole call.
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import type { Call } from '../../core/plugin.ts'
import { identifyByHeader } from '../fixtures/identify-by-header.ts'
import { plugin } from '../fixtures/plugins.ts'
import { modern } from '../support/rpc.ts'
import { openSession } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

/** What became of each attempt to change a call. */
function attempts(call: Call): string[] {
  const user = { subject: 'eve', scopes: [], roles: [], claims: {} }
  const changes: Array<() => unknown> = [
    () => Object.assign(call, { user }),
    () => Object.assign(call, { params: { name: 'other' } }),
    () => Object.assign(call, { mine: true }),
    () => Object.defineProperty(call, 'user', { value: user }),
    () => Object.assign(call.params, { name: 'other' }),
    () => Object.assign(call.user ?? {}, { subject: 'eve' }),
  ]
  return changes.map(change => {
    try {
      change()
      return 'changed'
    } catch (error) {
      return (error as Error).name
    }
  })
}

describe('Call object', () => {
  after(stopHosts)

  it('is immutable for plugins, with params, user and a stable view', async () => {
    const seen: Array<{ refused: string[]; sameView: boolean }> = []
    const changes = plugin(host =>
      host.onCall((call, next) => {
        const { view } = call
        seen.push({ refused: attempts(call), sameView: view === call.view })
        return next()
      }),
    )
    const who = defineTool({ name: 'who', handler: (_args, { user }) => user?.subject ?? 'nobody' })
    const { url } = await startHost({
      toolsets: { all: [who] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, identify: identifyByHeader(), changes },
    })
    const headers = { 'X-User': 'ada' }
    const session = await openSession(url, { headers })
    const answers = [
      (await modern(url, 'tools/call', { name: 'who' }, { headers })).message.result,
      (await session.request('tools/call', { name: 'who' })).message.result,
    ]
    expect(answers.map(({ content }) => content[0].text)).to.deep.equal(['ada', 'ada'])
    const typeErrors = Array.from({ length: 6 }, () => 'TypeError')
    for (const call of seen) expect(call).to.deep.equal({ refused: typeErrors, sameView: true })
    // The handshake, and both calls.
    expect(seen.length).to.equal(3)
  })

  it('reports the current log level of the session', async () => {
    const levels: unknown[] = []
    let changed = () => {}
    const waits = defineTool({
      name: 'waits',
      async handler(_args, { log, progress }) {
        progress(1)
        await new Promise<void>(resolve => {
          changed = resolve
        })
        log('debug', 'now heard')
        return 'done'
      },
    })
    const reads = plugin(host =>
      host.onCall(async (call, next) => {
        if (call.method !== 'tools/call') return next()
        levels.push(call.logLevel)
        const result = await next()
        levels.push(call.logLevel)
        return result
      }),
    )
    const { url } = await startHost({
      toolsets: { all: [waits] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, reads },
    })
    const session = await openSession(url)
    const stream = await session.call('waits')
    await stream.next()
    await session.request('logging/setLevel', { level: 'debug' })
    changed()
    const said = (await stream.rest()).map(({ message }) => message?.params?.data)
    expect(said).to.include('now heard')
    expect(levels).to.deep.equal(['info', 'debug'])
  })
})
