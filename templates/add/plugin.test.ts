// Tests the plugin example_name in a host with one tool.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testPlugin } from 'mcp-host/testing'
import { exampleName } from './plugin.ts'

test('example_name logs each call', async () => {
  const host = await testPlugin(exampleName, { slowAfter: 60_000 })
  try {
    const client = await host.client()
    await client.callTool('echo', { text: 'tea' })
    const logged = host.logged().filter(({ message }) => message === 'tool called')
    assert.deepEqual(
      logged.map(({ tool, outcome }) => [tool, outcome]),
      [['echo', 'ok']],
    )
  } finally {
    await host.close()
  }
})

test('example_name rejects unknown options', async () => {
  // @ts-expect-error: the compiler also rejects this option
  await assert.rejects(testPlugin(exampleName, { slowAftr: 1 }), /slowAfter/)
})
