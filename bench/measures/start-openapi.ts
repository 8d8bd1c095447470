// How long the start with a large OpenAPI document takes, and how much memory the host then has, compared with an empty host.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CONFIG_IMPORTS, ours, startOurs } from '../contestants.ts'
import { judge, judgeClock } from '../judge.ts'
import { type Measure, notMeasured } from '../measure.ts'
import { CAN_READ_COST } from '../process-cost.ts'
import { callEcho } from '../requests.ts'
import { measureRest, timeStart } from './start.ts'

const LIMITS = { start: 1_500, memory: 80 }
const PACKAGE = '@octokit/openapi'
const DOCUMENT = fileURLToPath(new URL(`../node_modules/${PACKAGE}/generated/api.github.com.json`, import.meta.url))

/** All methods, so that each operation is a tool. The own tool is for the calls of the measurement. */
const CONFIG = `${CONFIG_IMPORTS}
const own = { ...toolTexts(1)[0], input: INPUT_SCHEMA }

export default {
  server: SERVER_INFO,
  http: { port: 0 },
  toolsets: { own: [defineTool({ ...own, handler: ({ message }) => message })] },
  routes: { '/mcp': { toolsets: ['own'] }, '/github': { toolsets: ['github'] } },
  plugins: {
    'transport-streamable': {},
    openapi: { documents: { github: { document: ${JSON.stringify(DOCUMENT)}, methods: ['get', 'post', 'put', 'patch', 'delete'] } } },
  },
}
`

export const measure: Measure = {
  name: 'start with the OpenAPI document of GitHub',
  quick: false,
  async run({ scratch, signal, quick }) {
    if (!existsSync(DOCUMENT)) return notMeasured(`run \`npm ci\`, which installs ${PACKAGE}`)
    const empty = ours(1, callEcho).command(scratch)
    const github = startOurs(scratch, 'github', CONFIG)
    const took: number[] = []
    for (let round = 0; round < (quick ? 1 : 5); round++) took.push(await timeStart(github, signal))
    const figures = [{ what: '1,223 operations listen', unit: 'ms', values: took }]
    const targets = [judgeClock(`1,223 operations listen within ${LIMITS.start} ms`, took, '<=', LIMITS.start)]
    if (!CAN_READ_COST) return { figures, targets, notes: ['this system does not tell how much memory a process has'] }
    const above: number[] = []
    for (let round = 0; round < (quick ? 1 : 3); round++)
      above.push((await measureRest(github, signal)) - (await measureRest(empty, signal)))
    return {
      figures: [...figures, { what: 'resident at rest, above an empty host', unit: 'MB', values: above }],
      targets: [...targets, judge(`at rest <= ${LIMITS.memory} MB above an empty host`, above, '<=', LIMITS.memory)],
      notes: [],
    }
  },
}
