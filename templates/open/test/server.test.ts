// Tests the server with its config, on a free port.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testHost } from 'mcp-host/testing'
import config from '../mcp.config.ts'

test('a client can list and call tools', async t => {
  const host = await testHost(config)
  t.after(() => host.close())
  const client = await host.client()
  const tools = await client.listTools()
  assert.ok(tools.some(({ name }) => name === 'days_between'))
  const { structured } = await client.callTool('days_between', { from: '2026-02-28', to: '2026-03-01' })
  assert.deepEqual(structured, { days: 1, weekday: 'Sunday' })
})
