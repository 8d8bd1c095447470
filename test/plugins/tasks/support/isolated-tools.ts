// Isolated tools that ask their client. A test reads from their results in which runs and threads they were.
import { threadId } from 'node:worker_threads'
import { defineTool } from '../../../../core/index.ts'

const form = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } as const
const isolate = { processes: 1 } as const

export const asks = defineTool({
  name: 'asks',
  task: 'optional',
  isolate,
  async handler(_, { elicit, progress }) {
    progress(1, 3, 'first')
    const [one, two] = await Promise.all([
      elicit({ message: 'One?', requestedSchema: form }),
      elicit({ message: 'Two?', requestedSchema: form }, { key: 'two' }),
    ])
    progress(2, 3, 'second')
    const three = await elicit({ message: 'Three?', requestedSchema: form })
    progress(3, 3, 'third')
    return [one, two, three].map(({ action, content }) => content?.['name'] ?? action).join(', ')
  },
})

/** Asks twice, and does not wait for the second response. The first question ends the run: its timer never fires. */
export const hurries = defineTool({
  name: 'hurries',
  task: 'optional',
  isolate,
  async handler(_, { elicit, log }) {
    log('info', 'a run')
    const first = elicit({ message: 'One?', requestedSchema: form })
    await Promise.race([first, new Promise(resolve => setTimeout(resolve, 30_000))])
    void elicit({ message: 'Two?', requestedSchema: form })
    return 'done'
  },
})

export const computes = defineTool({
  name: 'computes',
  task: 'optional',
  isolate,
  handler: () => (threadId === 0 ? 'in the main thread' : 'in a thread'),
})
