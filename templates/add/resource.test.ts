// Tests the resource example_name.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testResource } from 'mcp-host/testing'
import { exampleName } from './resource.ts'

test('example_name can be read', async () => {
  const { text } = await testResource(exampleName, 'app://example_name')
  assert.equal(text, 'The text of example_name.')
})
