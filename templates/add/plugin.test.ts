// The plugin example_name, in a real host with nothing else but a tool.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testPlugin } from 'mcp-host/testing'
import { exampleName } from './plugin.ts'

test('example_name logs each call', async () => {
  const host = await testPlugin(exampleName, { slowAfter: 60_000 })
  try {
    const client = await host.client()
    await client.callTool('echo', { text: 'tea' })
    const told = host.logged().filter(({ message }) => message === 'tool called')
    assert.deepEqual(
      told.map(({ tool, outcome }) => [tool, outcome]),
      [['echo', 'ok']],
    )
  } finally {
    await host.close()
  }
})

test('example_name refuses options that it does not know', async () => {
  // @ts-expect-error: the compiler knows no option of this name either
  await assert.rejects(testPlugin(exampleName, { slowAftr: 1 }), /slowAfter/)
})
