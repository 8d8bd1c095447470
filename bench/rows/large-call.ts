// Measures a tools/call with a result of 1 MB and 10 MB, as JSON and streamed, and with arguments of that size.
// The baseline is a node:http server with JSON.parse and JSON.stringify.
import { CONFIG_IMPORTS, mcpHostWith, serverScript } from '../contestants.ts'
import { type BenchRequest, callConsume, callProduce, withProgress } from '../requests.ts'
import { type Contestant, type Row, ratio } from '../row.ts'
import { makeRecords } from '../servers/records.mjs'

const SIZES = [1, 10]

const CONFIG = `${CONFIG_IMPORTS}
import { makeRecords } from ${JSON.stringify(new URL('../servers/records.mjs', import.meta.url).href)}
const texts = new Map(${JSON.stringify(SIZES)}.map(megabytes => [megabytes, makeRecords(megabytes)]))

const produce = defineTool({
  name: 'produce',
  description: 'Returns a text of this size.',
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

const nodeHttp = (name: string, request: BenchRequest) =>
  serverScript(`node:http, ${name}`, 'node-http-large.mjs', [], request)
const host = (name: string, request: BenchRequest) =>
  mcpHostWith(`ours, ${name}`, name.replaceAll(/\W+/g, '-'), CONFIG, request)

function createContestants(megabytes: number): Contestant[] {
  const result = callProduce(megabytes)
  const args = callConsume(makeRecords(megabytes))
  return [
    nodeHttp(`${megabytes} MB result`, result),
    host(`${megabytes} MB result`, result),
    host(`${megabytes} MB result streamed`, withProgress(result, 1)),
    nodeHttp(`${megabytes} MB arguments`, args),
    host(`${megabytes} MB arguments`, args),
  ]
}

const createTargets = (megabytes: number) => [
  ratio(`ours, ${megabytes} MB result`, `node:http, ${megabytes} MB result`, '<=', 1.5),
  ratio(`ours, ${megabytes} MB result streamed`, `node:http, ${megabytes} MB result`, '<=', 1.5),
  // The host scans each quote in the body before it parses the JSON, and these arguments have many quotes.
  ratio(`ours, ${megabytes} MB arguments`, `node:http, ${megabytes} MB arguments`, '<=', 2),
]

export const row: Row = {
  name: 'tools/call, large',
  connections: 2,
  minSeconds: 3,
  baseline: false,
  contestants: SIZES.flatMap(createContestants),
  targets: SIZES.flatMap(createTargets),
}
