// The toolset under chaos: a tool with numbered progress, and resources whose changes are announced.
import { setTimeout as wait } from 'node:timers/promises'
import { defineResource, defineTool } from 'mcp-host'

const stream = defineTool({
  name: 'stream',
  input: {
    type: 'object',
    properties: { events: { type: 'integer' }, pace: { type: 'integer', description: 'Milliseconds' } },
    required: ['events', 'pace'],
  },
  async handler({ events, pace }, { progress, signal }) {
    for (let event = 1; event <= events; event++) {
      progress(event, events)
      await wait(pace, undefined, { signal })
    }
    return `done ${events}`
  },
})

const changes = defineResource({ name: 'changes', uriTemplate: 'load://changes/{number}', handler: () => 'text' })

export const loadToolset = [stream, changes]
