// Calls definitions as the host does, without a host: arguments and results are held against their schemas,
// and the context records what the handler did with it.
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { CallContext, ElicitParams, ElicitResult, ToolDefinition } from 'mcp-host'

const ajv = new Ajv2020({ strict: true })
addFormats.default(ajv)

function hold(schema: object, value: unknown, what: string): void {
  if (!ajv.validate(schema, value)) throw new TypeError(`${what}: ${ajv.errorsText()}`)
}

export interface Recorded {
  readonly updated: string[]
  readonly progress: unknown[][]
  readonly asked: ElicitParams[]
}

/** A context whose user answers every question with `answer`; what happens is pushed to `recorded`. */
export function createContext(options: { answer?: ElicitResult; signal?: AbortSignal } = {}) {
  const recorded: Recorded = { updated: [], progress: [], asked: [] }
  const { answer, signal = new AbortController().signal } = options
  const unused = () => {
    throw new Error('the examples have no use for this')
  }
  const items = { add: unused, remove: unused }
  const context: CallContext = {
    signal,
    user: undefined,
    session: undefined,
    route: { path: '/', params: {} },
    headers: {},
    client: { info: undefined, capabilities: {}, revision: '2026-07-28' },
    meta: {},
    progress: (...report) => void recorded.progress.push(report),
    log: () => {},
    fetch: unused,
    async elicit(params) {
      recorded.asked.push(params)
      if (!answer) throw new Error('the client cannot be asked')
      return answer
    },
    sample: unused,
    roots: unused,
    ping: async () => {},
    disconnect: unused,
    host: {
      tools: items,
      resources: items,
      prompts: items,
      resourceUpdated: uri => void recorded.updated.push(uri),
      settled: async () => {},
    },
  }
  return { context, recorded }
}

/** The structured result of a tool; rejects as the handler does, or with a TypeError where a schema does not hold. */
export async function callTool<Result>(
  tool: ToolDefinition,
  args: unknown,
  { context } = createContext(),
): Promise<Result> {
  hold(tool.input, args, 'arguments')
  const returned = (await tool.handler(args as never, context)) as { structuredContent?: unknown }
  const result = returned.structuredContent ?? returned
  hold(tool.output ?? {}, result, 'result')
  return result as Result
}

/** What `attempt` rejects with; rejects itself when it does not. */
export async function rejectionOf(attempt: Promise<unknown>): Promise<unknown> {
  return attempt.then(
    value => {
      throw new Error(`expected a rejection, got ${JSON.stringify(value)}`)
    },
    (reason: unknown) => reason,
  )
}
