// A host with the tools of tools.ts, and the expected results of those that exceed their limits.
import { expect } from 'chai'
import type { Config } from '../../core/index.ts'
import type { TestHost } from '../../core/testing.ts'
import { TOOLS } from './bundled.ts'

/** All of them at one route. */
export const configWith = (limits: NonNullable<NonNullable<Config['tools']>['limits']>) => ({
  server: { name: 'isolated', version: '1' },
  toolsets: { all: TOOLS },
  routes: { '/': { toolsets: 'all' } },
  tools: { limits },
})

/** What they are given, by the name that it has in the log. */
const GIVEN = { cpuTime: '300 ms of CPU time', memory: '96 MB of memory' }

/** The lines of the log on a tool's use of its thread. */
export const told = (host: TestHost, tool: string, over: string) =>
  host.logged('warn').filter(line => line['tool'] === tool && line['over'] === over)

/** Calls it: its call is ended for what it used, that is told once, and the next call is served. */
export async function expectEnded(host: TestHost, tool: string, over: keyof typeof GIVEN) {
  await using client = await host.client()
  const { text, isError } = await client.callTool(tool)
  expect(text).to.include(tool).and.include(`${GIVEN[over]}`)
  expect(isError).to.equal(true)
  expect(told(host, tool, over)).to.have.lengthOf(1)
  expect((await client.callTool('echo', { text: 'next' })).text).to.equal('next')
}
