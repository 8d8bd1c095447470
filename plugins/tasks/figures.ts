// What tasks are measured by: how many wait and run, for how long, and how they end.
import type { PluginHost } from '../../core/index.ts'
import type { QueueDepth, TaskEnd } from '../../core/transport.ts'

const STATES = ['queued', 'running'] as const

/** `depths`: of each store that this process uses, as they were when it last looked around. */
export function offerFigures({ figures }: Pick<PluginHost, 'figures'>, depths: () => readonly QueueDepth[]) {
  figures.gauge(
    {
      name: 'mcp_host_tasks',
      help: 'Tasks that wait for a worker (queued), and those that run. Where nodes share a store each says the same.',
      labels: ['state'],
    },
    () => STATES.map(state => [depths().reduce((sum, depth) => sum + depth[state], 0), { state }] as const),
  )
  figures.gauge(
    {
      name: 'mcp_host_task_queue_age_seconds',
      help: 'How long the task has waited that waits longest. Where nodes share a store each says the same.',
    },
    () => Math.max(0, ...depths().map(({ waited }) => waited / 1_000)),
  )
  const ends = figures.counter({
    name: 'mcp_host_tasks_ended_total',
    help: 'Tasks that this node ended, by how.',
    labels: ['state'],
  })
  const seconds = figures.histogram({
    name: 'mcp_host_task_seconds',
    help: 'How long each of them took, from its claim to its end.',
  })
  return (state: TaskEnd['state'], milliseconds: number) => {
    ends(1, { state })
    seconds(milliseconds / 1_000)
  }
}
