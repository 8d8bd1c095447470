// Tests the prompt example_name.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testPrompt } from 'mcp-host/testing'
import { exampleName } from './prompt.ts'

test('example_name returns a message', async () => {
  const { text } = await testPrompt(exampleName, { topic: 'tea' })
  assert.equal(text, 'Tell me about tea.')
})
