// Tests that the log names handlers that block the event loop.
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { ownWork } from '../../core/http/own-work.ts'
import { defineResource, defineTool } from '../../core/index.ts'
import { compute } from '../support/compute.ts'
import { modern, modernRequest } from '../support/rpc.ts'
import { postOpen, readWhole } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const toolsets = {
  all: [
    defineTool({ name: 'at_once', handler: () => compute(150) }),
    defineTool({
      name: 'later',
      async handler() {
        await sleep(5)
        compute(150)
        await sleep(60)
        return 'done'
      },
    }),
    // Begins some promises and timers, and computes in the last of them.
    defineTool({
      name: 'deep',
      async handler() {
        const part = async (depth: number): Promise<string> => {
          await sleep(1)
          return depth === 0 ? compute(150) : part(depth - 1)
        }
        return new Promise<string>(resolve =>
          setTimeout(() => void Promise.all([part(3), part(5)]).then(([a]) => resolve(a)), 5),
        )
      },
    }),
    // Is there all the time, computes in small pieces, and is never what holds anything.
    defineTool({
      name: 'small',
      async handler(_, { signal }) {
        while (!signal.aborted) {
          compute(2)
          await sleep(20)
        }
      },
      timeout: '30s',
    }),
    defineTool({
      name: 'until_abort',
      handler: (_, { signal }) => once(signal, 'abort').then(() => 'done'),
      timeout: '30s',
    }),
    defineTool({ name: 'waits', handler: () => sleep(300).then(() => 'done') }),
    defineResource({ name: 'page', uri: 'test://page', handler: () => compute(150) }),
  ],
}
const routes = { '/': { toolsets: 'all' } }

/** Calls until each handler is named. Each takes as long as the machine needs for 150 ms of CPU time. */
const MOST_CALLS = 20
/** Milliseconds for which the host reads bodies, several times the warning's limit, and how many bodies that are at most. */
const OWN_WORK = 600
const MOST_BODIES = 200

describe('Event loop stall warning', () => {
  after(stopHosts)

  it('names the blocking handler and the duration, but not waiting handlers', async () => {
    const { url, log } = await startHost({ toolsets, routes, tools: { stallWarning: '100ms' } })
    const call = (name: string) => modern(url, 'tools/call', { name })
    const lines = () => log.filter(({ message }) => /held the event loop|event loop was held/.test(message ?? ''))
    await call('at_once')
    await modern(url, 'resources/read', { uri: 'test://page' })
    expect(lines().map(({ level, kind, name }) => [level, kind, name])).to.deep.equal([
      ['warn', 'tools', 'at_once'],
      ['warn', 'resources', 'test://page'],
    ])
    for (const { ms } of lines()) expect(ms).to.be.at.least(150)
    log.splice(0)
    await call('waits')
    expect(lines()).to.deep.equal([])
    await call('later')
    const [line, ...more] = lines()
    expect(more).to.deep.equal([])
    // Who ended just before it may be named too, after those that ran on.
    expect(line).to.deep.include({ level: 'warn' })
    expect(line?.['among']).to.include('tools later')
  })

  it('identifies the handler from its second stall on, among concurrent handlers', async () => {
    const { url, log } = await startHost({ toolsets, routes, tools: { stallWarning: '100ms' } })
    const over = new AbortController()
    const call = (name: string, signal?: AbortSignal) =>
      modern(url, 'tools/call', { name }, { init: signal ? { signal } : {} })
    const others = [0, 1, 2].map(() => call('small', over.signal).catch(() => undefined))
    const exact = () => log.filter(({ message }) => message?.startsWith('a handler held the event loop'))
    const vague = () => log.filter(({ message }) => message?.startsWith('the event loop was held'))
    let calls = 0
    // `small` can be named too, if the machine takes the CPU away while it computes.
    const isNamed = (name: string) => exact().some(line => line['name'] === name)
    const done = () => isNamed('deep') && isNamed('later')
    for (; !done() && calls < MOST_CALLS; calls++) await call(calls % 2 === 0 ? 'deep' : 'later')
    over.abort()
    await Promise.all(others)
    expect(vague()[0]?.['among']).to.include('tools small')
    expect(done()).to.equal(true)
  })

  it('does not blame a waiting handler for large request bodies', async () => {
    const http = { maxBodySize: '64mb' }
    const { url, log } = await startHost({ toolsets, routes, http, tools: { stallWarning: '100ms' } })
    const over = new AbortController()
    const waiting = modern(url, 'tools/call', { name: 'until_abort' }, { init: { signal: over.signal } }).catch(
      () => undefined,
    )
    const members = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`key-${index}`, [index]]))
    const { headers, body } = modernRequest('tools/call', {
      name: 'nobody',
      arguments: { all: Array(200).fill(members) },
    })
    const before = ownWork()
    let bodies = 0
    for (; ownWork() - before < OWN_WORK && bodies < MOST_BODIES; bodies++)
      await readWhole(postOpen(url, body, headers))
    over.abort()
    await waiting
    expect(ownWork() - before).to.be.at.least(OWN_WORK)
    expect(log.filter(({ message }) => message?.includes('handler held the event loop'))).to.deep.equal([])
  })

  it('is disabled by the config value off', async () => {
    const { url, log } = await startHost({ toolsets, routes, tools: { stallWarning: 'off' } })
    for (const name of ['at_once', 'later', 'waits']) {
      expect((await modern(url, 'tools/call', { name })).status).to.equal(200)
    }
    expect(log.filter(({ level }) => level === 'warn')).to.deep.equal([])
  })
})
