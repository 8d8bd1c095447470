// Measures startup time and memory with a large OpenAPI document, compared with a host without one.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CONFIG_IMPORTS, hostCommand, mcpHost } from '../contestants.ts'
import { type Measure, NO_PROC, skipMeasure } from '../measure.ts'
import { HAS_PROC } from '../process-stats.ts'
import { callEcho } from '../requests.ts'
import { checkTarget, checkTimeTarget } from '../targets.ts'
import { measureIdleMemory, timeStartup } from './startup.ts'

const LIMITS = { startup: 1_500, memory: 80 }
const PACKAGE = '@octokit/openapi'
const DOCUMENT = fileURLToPath(new URL(`../node_modules/${PACKAGE}/generated/api.github.com.json`, import.meta.url))

/** Includes all methods, so that each operation is a tool. The own tool serves the calls of the measurement. */
const CONFIG = `${CONFIG_IMPORTS}
const own = { ...makeTools(1)[0], input: INPUT_SCHEMA }

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
  name: 'startup with the GitHub OpenAPI document',
  quick: false,
  async run({ scratch, signal, quick }) {
    if (!existsSync(DOCUMENT)) return skipMeasure(`${PACKAGE} is not installed: run npm ci in bench`)
    const empty = mcpHost(1, callEcho).command(scratch)
    const github = hostCommand(scratch, 'github', CONFIG)
    const times: number[] = []
    for (let round = 0; round < (quick ? 1 : 5); round++) times.push(await timeStartup(github, signal))
    const figures = [{ what: 'startup with 1,223 operations', unit: 'ms', values: times }]
    const targets = [
      checkTimeTarget(`startup with 1,223 operations <= ${LIMITS.startup} ms`, times, '<=', LIMITS.startup),
    ]
    if (!HAS_PROC) return { figures, targets, notes: [`memory not measured: ${NO_PROC}`] }
    const added: number[] = []
    for (let round = 0; round < (quick ? 1 : 3); round++)
      added.push((await measureIdleMemory(github, signal)) - (await measureIdleMemory(empty, signal)))
    return {
      figures: [...figures, { what: 'idle memory, above an empty host', unit: 'MB', values: added }],
      targets: [
        ...targets,
        checkTarget(`idle memory <= ${LIMITS.memory} MB above an empty host`, added, '<=', LIMITS.memory),
      ],
      notes: [],
    }
  },
}
