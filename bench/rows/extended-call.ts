// What the extensions cost a tool that has none of their keys: the same call with nothing but a transport, and on a host that
// serves tasks and apps to others. The client declares no extension.
import { ours } from '../contestants.ts'
import { callEcho } from '../requests.ts'
import { type Contestant, type Row, ratio } from '../row.ts'

const beside = (name: string, plugins: object): Contestant => ({
  ...ours(1, callEcho, { plugins: { 'transport-streamable': {}, ...plugins } }, name.replaceAll(' ', '-')),
  name: `ours, ${name}`,
})

export const row: Row = {
  name: 'tools/call of a tool without extensions',
  // The first of a row is found up to a tenth cheaper than the same again: what is compared comes after it.
  contestants: [
    ours(1, callEcho),
    beside('nothing beside', {}),
    beside('tasks', { tasks: {} }),
    beside('tasks and apps', { tasks: {}, apps: {} }),
  ],
  targets: [ratio('ours, tasks and apps', 'ours, nothing beside', '<=', 1.1)],
}
