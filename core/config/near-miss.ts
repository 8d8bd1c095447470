// A variable of the environment that is nearly one that we read: nothing reads it, and nobody would be told.
import { type Report, StartError } from '../http/errors.ts'
import { nearest } from '../mcp/nearest.ts'

/** Warns of a variable that is set and whose name is nearly `wanted`, which is not set. */
export function warnOfNearMiss(wanted: string, environment: NodeJS.ProcessEnv, report: Report): void {
  if (environment[wanted]) return
  for (const [name, value] of Object.entries(environment)) {
    if (!value || OURS.has(name) || !/mcp/i.test(name) || nearest(name, [wanted]) === undefined) continue
    const what = `the environment has ${name}, which nothing reads; did you mean "${wanted}"?`
    report(new StartError(what, { exitCode: 2 }), 'warning')
  }
}

/** Others of ours. */
const OURS: ReadonlySet<string> = new Set(['MCP_HOST_CLIENT_SECRET', 'MCP_HOST_HOME', 'MCP_HOST_TOKEN_KEY'])
