// Tests CPU time and memory of find_tools with ten thousand tools, within limits far above the measured values.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import { defineTool, type ToolDefinition } from '../../core/index.ts'
import { modern } from '../support/rpc.ts'
import { createSeededRandom } from '../support/seeded-random.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Bytes of objects, and of arrays of numbers. */
const used = () => {
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

const MANY = 10_000
const random = createSeededRandom(11)

const WORDS = (
  'order stock user invoice payment customer issue ticket branch deploy cluster node bucket message channel email calendar ' +
  'meeting document sheet row chart page wiki product price label parcel contact deal case article pod log record table query ' +
  'backup cache queue flag alert incident shift error employee holiday receipt report flight hotel weather map text image'
).split(' ')

/** One of a few that every tool has, a compound, or one that hardly another has. */
function word(): string {
  const one = WORDS[random.below(WORDS.length)] ?? ''
  const kind = random.below(8)
  if (kind < 2) return `${one}${WORDS[random.below(WORDS.length)]}`
  return kind < 4 ? random.below(1e9).toString(36) : one
}
const text = (length: number) => Array.from({ length }, word).join(' ')

const makeTool = (index: number): ToolDefinition => {
  const properties = Object.fromEntries(
    Array.from({ length: 6 }, () => [word(), { type: 'string' as const, description: text(8) }]),
  )
  return defineTool({
    name: `${word()}_${word()}_${index}`,
    title: text(3),
    description: text(30),
    input: { type: 'object', properties },
    handler: () => '',
  }) as unknown as ToolDefinition
}

/** Milliseconds of CPU, of this process, which serves and asks. */
async function cpuOf(part: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage()
  await part()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

const ROUNDS = 4

/** Of the cheapest round, which nothing else on the machine made dearer. */
async function leastCpuOf(part: () => Promise<unknown>): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let at = 0; at < ROUNDS; at += 1) least = Math.min(least, await cpuOf(part))
  return least
}

const some = (length: number, make: (at: number) => string) => Array.from({ length }, (_, at) => make(at)).join(' ')
const QUERIES: Readonly<Record<string, string>> = {
  usual: 'refund an order of a customer',
  'a word that every tool has': 'order',
  'all of the words that every tool has': WORDS.join(' '),
  'misspelt words': WORDS.map(one => `${one.slice(0, 3)}x${one.slice(4)}`).join(' '),
  letters: some(256, at => 'abcdefghijklmnopqrstuvwxyz'[at % 26] ?? ''),
  'beginnings of many words': some(170, at => WORDS[at % WORDS.length]?.slice(0, 2) ?? ''),
  'long words that nobody has': some(40, () => `${random.below(1e9).toString(36)}abcdef`),
  'one long word': 'x'.repeat(512),
  'no word': '?'.repeat(512),
  'other letters': 'é\u0301\ufdfa'.repeat(170),
}

describe(`find_tools with ${MANY} tools`, () => {
  after(stopHosts)

  it('builds its index within time and memory limits; no query is expensive', async () => {
    const all = Array.from({ length: MANY }, (_, index) => makeTool(index))
    const { url } = await startHost({ toolsets: { all }, routes: { '/': { toolsets: 'all', search: {} } } })
    const find = async (query: string) => {
      const params = { name: 'find_tools', arguments: { query: query.slice(0, 512), limit: 1 } }
      const { message } = await modern(url, 'tools/call', params)
      expect(message.result, query).not.to.have.property('isError')
    }
    await modern(url, 'tools/list')
    collect()
    const base = used()
    const index = await cpuOf(() => find('order'))
    collect()
    const grown = (used() - base) / 2 ** 20
    expect(index).to.be.below(30_000)
    expect(grown).to.be.below(500)
    const usual = await leastCpuOf(() => find(QUERIES['usual'] ?? ''))
    for (const [name, query] of Object.entries(QUERIES)) {
      const cost = await leastCpuOf(() => find(query))
      expect(cost / usual, name).to.be.below(15)
    }
  })
})
