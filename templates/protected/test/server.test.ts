// Tests the server with its config, on a free port, for clients with different scopes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testHost } from 'mcp-host/testing'
import config from '../mcp.config.ts'

const DATES = { from: '2026-02-28', to: '2026-03-01' }

test('a request without a token is rejected', async t => {
  const host = await testHost(config)
  t.after(() => host.close())
  const { status } = await fetch(new URL('/mcp', host.url), { method: 'POST' })
  assert.equal(status, 401)
})

test('a client can only call the tools of its scopes', async t => {
  const host = await testHost(config)
  t.after(() => host.close())
  const ada = await host.client({ user: { subject: 'ada', scopes: ['mcp.tools'] } })
  const { structured } = await ada.callTool('days_between', DATES)
  assert.deepEqual(structured, { days: 1, weekday: 'Sunday' })
  await assert.rejects(ada.callTool('server_status'))

  const admin = await host.client({ user: { subject: 'bob', scopes: ['mcp.tools', 'mcp.admin'] } })
  const { isError } = await admin.callTool('server_status')
  assert.equal(isError, false)
})
