// Conformance resources: text, bytes, one with subscriptions, and a template.
import { Buffer } from 'node:buffer'
import { defineResource } from 'mcp-host'
import { RED_PIXEL } from './samples.ts'

export const resources = [
  defineResource({
    uri: 'test://static-text',
    name: 'static-text',
    description: 'One line of text.',
    mimeType: 'text/plain',
    handler: () => 'This is the content of the static text resource.',
  }),
  defineResource({
    uri: 'test://static-binary',
    name: 'static-binary',
    description: 'A picture.',
    mimeType: 'image/png',
    handler: () => Buffer.from(RED_PIXEL, 'base64'),
  }),
  defineResource({
    uri: 'test://watched-resource',
    name: 'watched-resource',
    description: 'A text that clients subscribe to.',
    mimeType: 'text/plain',
    handler: () => 'This resource is watched.',
  }),
  defineResource({
    uriTemplate: 'test://template/{id}/data',
    name: 'template-data',
    description: 'A document about the id in its URI.',
    mimeType: 'application/json',
    complete: { id: value => ['123', '456', '789'].filter(id => id.startsWith(value)) },
    handler: ({ id }) => JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
  }),
]
