// Starts `mcp-host start --workers N`, and reads the processes from its start screen.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { makeFolder } from '../config/folder.ts'
import { type ConfigParts, configText, type Running, startCli } from './run-cli.ts'

export interface Crew {
  readonly running: Running
  readonly url: string
  readonly folder: string
  readonly primary: number
  /** Process ids, as the page has them. */
  readonly workers: readonly number[]
}

// biome-ignore lint/suspicious/noExplicitAny: each line has its own fields
export type LogLine = any

/** Answers with the id of the process that it runs in. */
export const PID_TOOL = "defineTool({ name: 'pid', handler: () => String(process.pid) })"

/** A config whose routes keep no sessions. */
export const workersConfig = (parts: ConfigParts = {}): string =>
  configText({ tool: PID_TOOL, routes: "{ '/': { toolsets: ['first', 'second'], stateless: true } }", ...parts })

/** A config whose tool `version` answers `text`; `before` is JavaScript in front of it. */
export const version = (text: string, before = ''): string =>
  workersConfig({
    before,
    http: "{ port: 0, keepAliveTimeout: '2s' }",
    tool: `defineTool({ name: 'version', handler: () => '${text}' })`,
  })

/** Writes another config and tells the primary to read it. */
export async function reload({ running, folder }: Crew, config: string): Promise<void> {
  await writeFile(join(folder, 'mcp.config.mjs'), config)
  running.child.kill('SIGHUP')
}

/** What stderr has so far, as log lines. */
export function linesOf(stderr: string): LogLine[] {
  return stderr
    .split('\n')
    .filter(line => line.startsWith('{') && line.endsWith('}'))
    .map(line => JSON.parse(line))
}

/** Starts the workers and resolves once they serve. */
export async function startWorkers(
  count: number | string,
  config = workersConfig(),
  env: Record<string, string> = {},
  files: Record<string, string> = {},
): Promise<Crew> {
  const folder = await makeFolder({ 'mcp.config.mjs': config, ...files })
  const running = startCli(['start', '--workers', String(count)], folder, env)
  const url = await running.listening()
  const [, pids = ''] = await running.printed(/^\d+ workers?: pid (.+)$/m)
  const [, primary] = await running.printed(/^primary: pid (\d+);/m)
  expect(Number(primary)).to.equal(running.child.pid)
  return {
    running,
    url,
    folder,
    primary: Number(primary),
    workers: pids.split(', ').map(Number),
  }
}
