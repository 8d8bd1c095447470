// Tests that misbehaving isolated tools fail only their own calls, and leave no process behind.
import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import { describeThrown } from '../../core/http/describe-thrown.ts'
import type { TestHost } from '../../core/testing.ts'
import { eventually } from '../support/eventually.ts'
import { testHost } from './bundled.ts'
import { configWith, expectEnded, told } from './misbehaving.ts'

const LOOPS = ['loop', 'regex', 'promises', 'immediates'].map(name => `loop_${name}`)
const HOGS = ['hog_lists', 'hog_buffers', 'hog_fork']
/** They run at the same time as calls of other tools. */
const CONCURRENT = ['loop_loop', 'loop_promises', 'hog_lists', 'hog_buffers']
const OTHERS = 60
const ENDED = ['loop_loop', 'loop_promises', 'odd_exit', 'odd_later']

function parentOf(pid: string): number {
  try {
    return Number(/^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  } catch {
    return 0
  }
}

/** Number of child processes of this process. */
const processes = () => readdirSync('/proc').filter(name => /^\d+$/.test(name) && parentOf(name) === process.pid).length

describe('Misbehaving isolated tool', () => {
  let host: TestHost
  before(async () => {
    host = await testHost(configWith({ odd_sleeps: { timeout: '10s' } }))
  })
  after(() => host.close())

  for (const name of LOOPS) {
    it(`is terminated at its CPU time limit: ${name}`, () => expectEnded(host, name, 'cpuTime'))
  }

  for (const name of HOGS) {
    it(`is terminated at its memory limit: ${name}`, () => expectEnded(host, name, 'memory'))
  }

  it('does not affect other calls', async () => {
    await using client = await host.client()
    let isOver = false
    const bad = CONCURRENT.map(name => client.callTool(name))
    const ended = Promise.all(bad).finally(() => {
      isOver = true
    })
    let [isolated, failed, meanwhile] = [0, 0, 0]
    const call = async (name: string, n: number) => {
      const { text } = await client.callTool(name, { text: `${n}` }).catch(error => ({ text: `${error}` }))
      if (text !== `${n}`) failed++
    }
    for (let n = 0; n < OTHERS / 10; n++) {
      await Promise.all(Array.from({ length: 10 }, (_, more) => call('plain', 10 * n + more)))
      if (!isOver) meanwhile += 10
    }
    for (; isolated < 10; isolated++) await call('echo', isolated)
    const results = await ended
    expect(failed).to.equal(0)
    expect(meanwhile).to.be.above(0)
    expect(results.filter(({ isError }) => isError)).to.have.lengthOf(CONCURRENT.length)
  })

  it('is not terminated while it waits longer than its CPU time limit', async () => {
    await using client = await host.client()
    expect((await client.callTool('odd_sleeps', { n: 900 })).text).to.equal('slept')
  })

  for (const [name, args, why] of [
    ['odd_recursion', {}, 'Maximum call stack size exceeded'],
    ['odd_exit', { n: 3 }, 'odd_exit ended its thread by process.exit(3): throw an error instead'],
    ['odd_later', {}, 'thrown in a timer'],
    ['odd_rejection', {}, 'rejected by nobody'],
    ['odd_huge', { n: 40 }, 'its result cannot be sent to the host: it is larger than 16 MB'],
  ] as const) {
    it(`fails only its own call: ${name}`, async () => {
      await using client = await host.client()
      const { text, isError } = await client.callTool(name, args)
      expect(text).to.equal(`${name} failed`)
      expect(isError).to.equal(true)
      expect(host.logged('error').map(line => (line['err'] as Error).message)).to.include(why)
      expect((await client.callTool('echo', { text: 'next' })).text).to.equal('next')
    })
  }

  it('is named if it throws after its response, without ending other calls', async () => {
    await using client = await host.client()
    const lines = () => told(host, 'odd_afterwards', 'uncaught')
    for (const count of [1, 2]) {
      // One at a time: a thread that is replaced for the first error never throws a second one.
      expect((await client.callTool('odd_afterwards')).text).to.equal('answered')
      const [{ text }] = await Promise.all([
        client.callTool('odd_sleeps', { n: 200 }),
        eventually('the error is logged', lines, found => found.length === count),
      ])
      expect(text).to.equal('slept')
    }
  })

  it('responds once', async () => {
    await using client = await host.client()
    const answers = await Promise.all(['1', '2', '3'].map(() => client.callTool('odd_twice')))
    expect(answers.map(({ text }) => text)).to.deep.equal(['answered', 'answered', 'answered'])
    expect((await client.callTool('echo', { text: 'next' })).text).to.equal('next')
  })

  it('sends only valid messages, up to a limit', async () => {
    await using client = await host.client({ revision: '2025-11-25' })
    await client.request('logging/setLevel', { level: 'debug' })
    expect((await client.callTool('chatters')).text).to.match(/300 ms.*CPU/)
    const messages = client.notifications.filter(({ method }) => method === 'notifications/message')
    expect(messages.length).to.be.within(1, 20_000)
  })

  it('gets a new thread if it keeps too much memory', async () => {
    await using client = await host.client()
    for (let n = 0; n < 4; n++) await client.callTool('odd_keeps', { n: 60 })
    const lines = host.logged('warn').filter(({ tool }) => tool === 'odd_keeps')
    expect(lines.length).to.be.above(0)
    expect((await client.callTool('echo', { text: 'next' })).text).to.equal('next')
  })

  it('changes only the globals of its own thread', async () => {
    await using client = await host.client()
    expect((await client.callTool('odd_pollutes')).text).to.equal('yes')
    expect(Reflect.get({}, 'polluted')).to.equal(undefined)
    expect(process.env['POLLUTED']).to.equal(undefined)
    expect([1].push(2)).to.equal(2)
    expect((await client.callTool('plain', { text: 'whole' })).text).to.equal('whole')
  })

  it('leaves no process behind', async () => {
    await using client = await host.client()
    await client.callTool('echo', { text: 'first' })
    const before = processes()
    const results = await Promise.all(ENDED.map(name => client.callTool(name)))
    expect(results.every(({ isError }) => isError)).to.equal(true)
    const { text } = await client.callTool('echo', { text: 'last' })
    const failures = host.logged('error').filter(line => line['name'] === 'echo' || line['over'] !== undefined)
    const why = failures.map(line => describeThrown(line['err'], true))
    expect(text, JSON.stringify(why)).to.equal('last')
    await eventually('their processes have ended', processes, found => found <= before + 1)
  })
})
