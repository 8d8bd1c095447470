// Tests the tools without HTTP.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testTool } from 'mcp-host/testing'
import { daysBetween } from '../tools/days_between.ts'
import { serverStatus } from '../tools/server_status.ts'

test('days_between counts the days', async () => {
  const { structured } = await testTool(daysBetween, { from: '2026-12-24', to: '2026-12-31' })
  assert.deepEqual(structured, { days: 7, weekday: 'Thursday' })
})

test('days_between rejects invalid dates', async () => {
  const { isError, text } = await testTool(daysBetween, { from: 'tomorrow', to: '2026-12-31' })
  assert.equal(isError, true)
  assert.match(text, /from/)
})

test('server_status returns the caller', async () => {
  const { structured } = await testTool(serverStatus, {}, { user: { subject: 'ada' } })
  assert.equal(structured?.caller, 'ada')
})
