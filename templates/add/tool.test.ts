// Tests the tool example_name.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testTool } from 'mcp-host/testing'
import { exampleName } from './tool.ts'

test('example_name returns its text', async () => {
  const { text, isError } = await testTool(exampleName, { text: 'tea' })
  assert.equal(isError, false)
  assert.equal(text, 'example_name received: tea')
})
