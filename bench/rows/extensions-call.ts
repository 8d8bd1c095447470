// Measures the cost of enabled extensions for a tool and a client that do not use them.
import { mcpHost } from '../contestants.ts'
import { callEcho } from '../requests.ts'
import { type Contestant, type Row, ratio } from '../row.ts'

const withPlugins = (name: string, plugins: object): Contestant => ({
  ...mcpHost(1, callEcho, { plugins: { 'transport-streamable': {}, ...plugins } }, name.replaceAll(' ', '-')),
  name: `ours, ${name}`,
})

export const row: Row = {
  name: 'tools/call of a tool without extensions',
  // The first contestant of a row costs up to 10 % less than an identical later one, so it is not in the target.
  contestants: [
    mcpHost(1, callEcho),
    withPlugins('no extensions', {}),
    withPlugins('tasks', { tasks: {} }),
    withPlugins('tasks and apps', { tasks: {}, apps: {} }),
  ],
  targets: [ratio('ours, tasks and apps', 'ours, no extensions', '<=', 1.1)],
}
