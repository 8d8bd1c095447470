// Tests of a project, by types: what a tool takes and gives is known to `testTool`, and a plugin's options to `testPlugin`.
import { defineConfig, defineTool } from 'mcp-host'
import { definePlugin } from 'mcp-host/plugin'
import { type TestClient, type TestHost, type ToolOutcome, testHost, testPlugin, testTool } from 'mcp-host/testing'

export const sum = defineTool({
  name: 'sum',
  input: {
    type: 'object',
    properties: { numbers: { type: 'array', items: { type: 'number' } }, label: { type: 'string' } },
    required: ['numbers'],
  },
  handler: async ({ numbers, label }) => ({ total: numbers.reduce((a, b) => a + b, 0), label }),
})
export const nothing = defineTool({ name: 'nothing', handler() {} })

export async function testSum(): Promise<number | undefined> {
  const outcome: ToolOutcome<{ total: number; label: string | undefined }> = await testTool(sum, { numbers: [1, 2] })
  // @ts-expect-error: what the input requires is missing
  await testTool(sum)
  // @ts-expect-error: the numbers are of another type than the input says
  await testTool(sum, { numbers: ['1'] })
  // @ts-expect-error: nothing of this name is returned
  outcome.structured?.sum
  await testTool(nothing)
  return outcome.structured?.total
}

const audit = definePlugin<{ file: string }>({
  options: {
    type: 'object',
    additionalProperties: false,
    properties: { file: { type: 'string' } },
    required: ['file'],
  },
  async underTest(options) {
    return { options: { ...options, file: 'test.log' }, issue: user => user.subject ?? '' }
  },
  setup() {},
})

export async function testServed(): Promise<[TestHost, TestClient]> {
  const config = defineConfig({
    server: { name: 'consumer', version: '1.0.0' },
    toolsets: { all: [sum, nothing] },
    routes: { '/': { toolsets: 'all' } },
  })
  await using host = await testHost(config)
  const client = await host.client({ revision: '2025-11-25', user: { scopes: ['read'] } })
  const { text, isError }: { text: string; isError: boolean } = await client.callTool('sum', { numbers: [1] })
  await testPlugin(audit, { file: text })
  // @ts-expect-error: an option of the wrong type
  await testPlugin(audit, { file: isError })
  return [host, client]
}
