// What large messages cost: a tools/call of 2026-07-28 with 1 MB and 10 MB of result, as JSON and as the last event of a
// stream, and with arguments of that size; against node:http doing JSON.parse and JSON.stringify of the same. Two
// connections repeat it. The peak of memory stands in the table.
import { CONFIG_IMPORTS, oursWith, peer } from '../contestants.ts'
import { type BenchRequest, callForMegabytes, callWithText, withProgress } from '../requests.ts'
import { type Contestant, type Row, ratio } from '../row.ts'
import { makeRecords } from '../servers/records.mjs'

const SIZES = [1, 10]

const CONFIG = `${CONFIG_IMPORTS}
import { makeRecords } from ${JSON.stringify(new URL('../servers/records.mjs', import.meta.url).href)}
const texts = new Map(${JSON.stringify(SIZES)}.map(megabytes => [megabytes, makeRecords(megabytes)]))

const produce = defineTool({
  name: 'produce',
  description: 'Returns so many megabytes.',
  input: { type: 'object', properties: { megabytes: { type: 'integer' } }, required: ['megabytes'] },
  handler({ megabytes }, { progress }) {
    progress(0, 1)
    return texts.get(megabytes)
  },
})
const consume = defineTool({
  name: 'consume',
  description: 'Returns the length of its text.',
  input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  handler: ({ text }) => String(text.length),
})

export default {
  server: SERVER_INFO,
  http: { port: 0, maxBodySize: '32mb' },
  toolsets: { large: [produce, consume] },
  routes: { '/mcp': { toolsets: ['large'] } },
  plugins: { 'transport-streamable': {} },
}
`

const limit = (name: string, request: BenchRequest) => peer(`node:http, ${name}`, 'large.mjs', [], request)
const host = (name: string, request: BenchRequest) =>
  oursWith(`ours, ${name}`, name.replaceAll(/\W+/g, '-'), CONFIG, request)

function contestantsOf(megabytes: number): Contestant[] {
  const result = callForMegabytes('produce', megabytes)
  const args = callWithText('consume', makeRecords(megabytes))
  return [
    limit(`${megabytes} MB result`, result),
    host(`${megabytes} MB result`, result),
    host(`${megabytes} MB result streamed`, withProgress(result, 1)),
    limit(`${megabytes} MB arguments`, args),
    host(`${megabytes} MB arguments`, args),
  ]
}

const targetsOf = (megabytes: number) => [
  ratio(`ours, ${megabytes} MB result`, `node:http, ${megabytes} MB result`, '<=', 1.5),
  ratio(`ours, ${megabytes} MB result streamed`, `node:http, ${megabytes} MB result`, '<=', 1.5),
  // Their text is looked at before anything parses it, each quote of it, and these have a quote every four characters.
  ratio(`ours, ${megabytes} MB arguments`, `node:http, ${megabytes} MB arguments`, '<=', 2),
]

export const row: Row = {
  name: 'tools/call, large',
  connections: 2,
  leastSeconds: 3,
  yardstick: false,
  contestants: SIZES.flatMap(contestantsOf),
  targets: SIZES.flatMap(targetsOf),
}
