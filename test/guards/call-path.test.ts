// Counts the files and functions of one `tools/call` with the precise coverage of V8, and enforces their limits.
import { Session } from 'node:inspector/promises'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { modern } from '../support/rpc.ts'
import { openSession } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

after(stopHosts)

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const echo = defineTool({
  name: 'echo',
  input: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
  handler: ({ message }: { message: string }) => message,
})

/** What esbuild adds: `__name`, and getters of imports and exports. */
const ADDED = /^(get|__name)$/
const EXPORT = /^\(\)=>(import_\w+\.)?\w+$/

/** The functions of core and plugins that ran since the last call of this, such as `core/mcp/calls/call.ts createCall`. */
async function takeFunctions(session: Session): Promise<Set<string>> {
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const found = new Set<string>()
  for (const { url, scriptId, functions } of result) {
    const file = url.startsWith('file:') ? fileURLToPath(url).slice(ROOT.length) : ''
    if (!/^(core|plugins)\//.test(file)) continue
    const ran = functions.filter(({ functionName, ranges }) => ranges[0]?.count && !ADDED.test(functionName))
    if (ran.length === 0) continue
    const { scriptSource } = await session.post('Debugger.getScriptSource', { scriptId })
    for (const { functionName, ranges } of ran) {
      const [{ startOffset, endOffset } = { startOffset: 0, endOffset: 0 }] = ranges
      if (EXPORT.test(scriptSource.slice(startOffset, endOffset))) continue
      found.add(`${file} ${functionName || scriptSource.slice(startOffset, startOffset + 60)} ${startOffset}`)
    }
  }
  return found
}

/**
 * The functions that run in each of three calls, and not without a call: timers of this process, such as those of hosts of other test
 * files, can run during every call on a busy machine.
 */
async function functionsOf(call: () => Promise<unknown>): Promise<string[]> {
  // The first calls compile and connect.
  for (let run = 0; run < 2; run++) await call()
  const session = new Session()
  session.connect()
  await session.post('Debugger.enable')
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  const runs: Set<string>[] = []
  const began = performance.now()
  for (let run = 0; run < 3; run++) {
    await call()
    // The response is closed after the client has it.
    await nextTurn()
    runs.push(await takeFunctions(session))
  }
  await pause(performance.now() - began)
  const idle = await takeFunctions(session)
  session.disconnect()
  const [first = new Set<string>()] = runs
  return [...first].filter(name => !idle.has(name) && runs.every(run => run.has(name)))
}

const MOST_FILES = 35
const MOST_FUNCTIONS = 110

function check(functions: string[]) {
  const files = new Set(functions.map(name => name.split(' ', 1)[0]))
  expect(functions.length, functions.join('\n')).to.be.within(1, MOST_FUNCTIONS)
  expect(files.size, [...files].join('\n')).to.be.within(1, MOST_FILES)
}

describe('the path of a tools/call', () => {
  let url = ''

  before(async () => {
    // Timers of a busy machine would run during each call.
    const config = { toolsets: { all: [echo] }, routes: { '/': { toolsets: 'all' } } }
    const started = await startHost(config, undefined, { clock: createManualClock() })
    url = started.url
  })

  it('passes few files and functions without a session', async () => {
    const call = () => modern(`${url}/`, 'tools/call', { name: 'echo', arguments: { message: 'hello' } })
    check(await functionsOf(call))
  })

  it('passes few files and functions in a session', async () => {
    const { id } = await openSession(`${url}/`)
    const headers = {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'Mcp-Session-Id': id,
      'MCP-Protocol-Version': '2025-11-25',
    }
    let last = 0
    // Keeps its connection, as clients do.
    const call = async () => {
      const params = { name: 'echo', arguments: { message: 'hello' } }
      const body = JSON.stringify({ jsonrpc: '2.0', id: ++last, method: 'tools/call', params })
      const response = await fetch(`${url}/`, { method: 'POST', headers, body })
      expect(await response.text()).to.contain('hello')
    }
    check(await functionsOf(call))
  })
})
