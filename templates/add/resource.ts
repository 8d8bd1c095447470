// The resource example_name.
import { defineResource } from 'mcp-host'

export const exampleName = defineResource({
  name: 'example_name',
  description: 'Describe the resource and when to read it.',
  uri: 'app://example_name',
  mimeType: 'text/plain',
  handler: () => 'The text of example_name.',
})
