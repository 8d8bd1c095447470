// The load: one request repeated over so many connections, by wrk where it is installed, else by autocannon.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Cores, HAS_WRK, runLoad } from './processes.ts'
import type { BenchRequest } from './requests.ts'

/** Where a row does not say how many. */
export const CONNECTIONS = 32
/** How long one answer may take, seconds: the slowest peers keep 32 callers waiting for a while. */
const ANSWER_LIMIT = 10
/** How much longer than asked for a load may run before it counts as stuck, milliseconds. */
const GRACE_MS = 20_000

export interface LoadResult {
  readonly requests: number
  readonly seconds: number
}

interface Load {
  readonly url: string
  readonly request: BenchRequest
  readonly seconds: number
  readonly connections: number
  readonly scratch: string
  readonly signal: AbortSignal
  readonly cores?: Cores
}

/** A Lua string of these characters as they are: requests hold no `]==]`. Keep a space between it and a bracket. */
const luaString = (text: string) => `[==[${text}]==]`

/** Stands in a body for an id that each request has another of: requests of one session that run at once must differ. */
export const UNIQUE_ID = '[<id>]'

const COUNTING = `
local sent = 0
function request()
  sent = sent + 1
  return wrk.format(nil, nil, nil, (wrk.body:gsub('%[<id>%]', tostring(sent))))
end
`

const luaScript = ({ headers, body }: BenchRequest) => `
wrk.method = 'POST'
wrk.body = ${luaString(body)}
${Object.entries(headers)
  .map(([name, value]) => `wrk.headers[ ${luaString(name)} ] = ${luaString(value)}`)
  .join('\n')}
${body.includes(UNIQUE_ID) ? COUNTING : ''}
function done(summary)
  local e = summary.errors
  local failed = e.connect + e.read + e.write + e.timeout + e.status
  print(string.format('{"requests":%d,"seconds":%f,"failed":%d}', summary.requests, summary.duration / 1e6, failed))
end
`

async function runWrk({ url, request, seconds, connections, scratch, signal, cores }: Load) {
  const script = join(scratch, 'request.lua')
  writeFileSync(script, luaScript(request))
  const limits = ['-t', '1', '-c', `${connections}`, '-d', `${seconds}s`, '--timeout', `${ANSWER_LIMIT}s`]
  const output = await runLoad(['wrk', ...limits, '-s', script, url], signal, cores)
  const report = output.lastIndexOf('{"requests"')
  if (report === -1) throw new Error(`wrk gave no figures: ${output.slice(0, 400)}`)
  return JSON.parse(output.slice(report))
}

async function runAutocannon({ url, request, seconds, connections, signal, cores }: Load) {
  const program = fileURLToPath(new URL('node_modules/autocannon/autocannon.js', import.meta.url))
  const limits = ['-c', `${connections}`, '-d', `${seconds}`, '-t', `${ANSWER_LIMIT}`, '--json', '--no-progress']
  const headers = Object.entries(request.headers).flatMap(([name, value]) => ['-H', `${name}=${value}`])
  // autocannon's `-I` replaces what UNIQUE_ID is.
  const unique = request.body.includes(UNIQUE_ID) ? ['-I'] : []
  const command = [process.execPath, program, ...limits, ...unique, '-m', 'POST', ...headers, '-b', request.body, url]
  const output = await runLoad(command, signal, cores)
  const report = JSON.parse(output.slice(output.indexOf('{')))
  // `errors` counts time-outs too.
  return { requests: report['2xx'], seconds: report.duration, failed: report.non2xx + report.errors }
}

/** Repeats the request for so many seconds. Throws when any answer failed; slow servers may have answered none. */
export async function applyLoad(load: Load): Promise<LoadResult> {
  const signal = AbortSignal.any([load.signal, AbortSignal.timeout(load.seconds * 1000 + GRACE_MS)])
  const run = HAS_WRK ? runWrk : runAutocannon
  const { requests, seconds, failed } = await run({ ...load, signal })
  if (failed > 0) throw new Error(`${failed} requests failed, ${requests} were answered`)
  return { requests, seconds }
}
