// Screen 9: background tasks, their queue, and the action that cancels one.
import { PATHS, type Reply, type TaskRow, type Tasks } from '../../api.ts'
import { clock } from '../data/clock.ts'
import { useQuery } from '../data/query.ts'
import { useResource } from '../data/resource.ts'
import { count, duration, fullTime } from '../data/text.ts'
import { Action, ActionsOff } from '../parts/action.tsx'
import { Badge, type Tone } from '../parts/badge.tsx'
import { Span } from '../parts/charts.tsx'
import { Drawer } from '../parts/dialogs.tsx'
import { Empty, Loaded, Scope } from '../parts/states.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Code, Optional, Text } from '../parts/text.tsx'

const TONES: Readonly<Record<string, Tone>> = {
  working: 'info',
  input_required: 'warn',
  completed: 'good',
  failed: 'fault',
}

const ENDED: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled'])

const Status = ({ status }: Pick<TaskRow, 'status'>) => (
  <Badge tone={TONES[status] ?? 'plain'}>
    <Text value={status.replaceAll('_', ' ')} most={30} />
  </Badge>
)

const COLUMNS: readonly Column<TaskRow>[] = [
  { title: 'Tool', cell: ({ tool }) => <Code value={tool} />, by: ({ tool }) => tool },
  { title: 'Status', cell: row => <Status {...row} />, by: ({ status }) => status, width: '9rem' },
  { title: 'Owner', cell: ({ owner }) => <Optional value={owner} none="anonymous" />, isExtra: true },
  { title: 'Route', cell: ({ route }) => <Optional value={route} />, isExtra: true },
  {
    title: 'Created',
    cell: ({ createdAt }) => fullTime(createdAt),
    by: ({ createdAt }) => createdAt,
    width: '13rem',
    isExtra: true,
  },
  {
    title: 'Duration',
    cell: ({ createdAt, updatedAt, status }) => duration((ENDED.has(status) ? updatedAt : clock.value) - createdAt),
    by: ({ createdAt, updatedAt, status }) => (ENDED.has(status) ? updatedAt - createdAt : Date.now() - createdAt),
    width: '7rem',
    isNumber: true,
  },
]

interface DrawerProps {
  readonly row: TaskRow
  readonly onClose: () => void
  readonly onCancelled: () => void
}

function TaskDrawer({ row, onClose, onCancelled }: DrawerProps) {
  const isEnded = ENDED.has(row.status)
  const end = isEnded ? row.updatedAt : clock.value
  const total = Math.max(1, end - row.createdAt)
  return (
    <Drawer title={<Text value={row.tool} />} onClose={onClose}>
      <div>
        <Status {...row} />
      </div>
      <section class="stack">
        <h3>Timeline</h3>
        <div class="stages">
          <span>created</span>
          <Span start={0} end={row.updatedAt - row.createdAt} total={total} isFault={row.status === 'failed'} />
          <span class="number small">{duration(row.updatedAt - row.createdAt)}</span>
          {!isEnded && (
            <>
              <span>
                <Text value={row.status.replaceAll('_', ' ')} most={30} />
              </span>
              <Span start={row.updatedAt - row.createdAt} end={total} total={total} />
              <span class="number small">{duration(end - row.updatedAt)}</span>
            </>
          )}
        </div>
      </section>
      <dl class="facts">
        <dt>Created</dt>
        <dd class="number">{fullTime(row.createdAt)}</dd>
        <dt>Last change</dt>
        <dd class="number">{fullTime(row.updatedAt)}</dd>
        <dt>Owner</dt>
        <dd>
          <Optional value={row.owner} none="anonymous" />
        </dd>
        <dt>Route</dt>
        <dd>
          <Optional value={row.route} />
        </dd>
      </dl>
      {!isEnded && (
        <Action
          label="Cancel task"
          title="Cancel this task?"
          path={PATHS.cancelTask}
          body={{ handle: row.handle }}
          isDanger
          onDone={onCancelled}
        >
          The tool is aborted. Its owner sees the status cancelled.
        </Action>
      )}
      {!isEnded && <ActionsOff />}
    </Drawer>
  )
}

export default function TasksScreen() {
  const tasks = useResource<Reply<Tasks>>(PATHS.tasks, { every: 5 })
  const [query, change] = useQuery()
  const status = query.get('status') ?? ''
  return (
    <Loaded from={tasks}>
      {data => {
        const opened = data.tasks.find(({ handle }) => handle === query.get('task'))
        const shown = data.tasks.filter(task => status === '' || task.status === status)
        const close = () => change({ task: undefined })
        return (
          <>
            <div class="tools">
              <Scope {...data} />
              <label class="inline">
                <span>Status</span>
                <select value={status} onChange={event => change({ status: event.currentTarget.value })}>
                  <option value="">All</option>
                  {Object.entries(data.counts).map(([name, amount]) => (
                    <option key={name} value={name}>
                      {name.replaceAll('_', ' ')} ({count(amount)})
                    </option>
                  ))}
                </select>
              </label>
              {data.queueAge !== undefined && (
                <span class="muted small">Oldest queued task: {duration(data.queueAge * 1_000)}</span>
              )}
            </div>
            {shown.length === 0 ? (
              <Empty title={data.tasks.length === 0 ? 'No tasks' : 'No task has this status'} />
            ) : (
              <Table
                caption="Tasks"
                columns={COLUMNS}
                rows={shown}
                keyOf={({ handle }) => handle}
                onOpen={({ handle }) => change({ task: handle })}
              />
            )}
            {opened && (
              <TaskDrawer
                row={opened}
                onClose={close}
                onCancelled={() => {
                  close()
                  tasks.reload()
                }}
              />
            )}
          </>
        )
      }}
    </Loaded>
  )
}
