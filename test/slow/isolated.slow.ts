// Tests isolated tools with every kind of excessive memory use, and forty terminated calls in a row.
import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import { describeThrown } from '../../core/http/describe-thrown.ts'
import type { TestHost } from '../../core/testing.ts'
import { testHost } from '../isolated/bundled.ts'
import { configWith, expectEnded } from '../isolated/misbehaving.ts'
import { eventually } from '../support/eventually.ts'

const HOGS = ['objects', 'numbers', 'strings', 'map', 'arrays', 'lists', 'buffers', 'fork'].map(name => `hog_${name}`)
const BAD = ['loop_loop', 'loop_regex', 'loop_promises', 'odd_exit', 'odd_later']
const TIMES = 8

function parentOf(pid: string): number {
  try {
    return Number(/^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  } catch {
    return 0
  }
}

/** Number of child processes of this process. */
const processes = () => readdirSync('/proc').filter(name => /^\d+$/.test(name) && parentOf(name) === process.pid).length

describe('isolated tools: memory limit and process cleanup', function () {
  this.timeout(240_000)
  let host: TestHost
  before(async () => {
    host = await testHost(configWith({ 'loop_*': { isolate: { cpuTime: '50ms' } } }))
  })
  after(() => host.close())

  for (const name of HOGS) {
    it(`ends a tool over the memory limit: ${name}`, () => expectEnded(host, name, 'memory'))
  }

  it('leaves no process behind', async () => {
    await using client = await host.client()
    await client.callTool('echo', { text: 'first' })
    const before = processes()
    let ended = 0
    for (let n = 0; n < TIMES; n++) {
      const results = await Promise.all(BAD.map(name => client.callTool(name)))
      ended += results.filter(({ isError }) => isError).length
    }
    expect(ended).to.equal(TIMES * BAD.length)
    const { text } = await client.callTool('echo', { text: 'last' })
    const failures = host.logged('error').filter(line => line['name'] === 'echo' || line['over'] !== undefined)
    const why = failures.map(line => describeThrown(line['err'], true))
    expect(text, JSON.stringify(why)).to.equal('last')
    await eventually('their processes have ended', processes, found => found <= before + 1)
  })
})
