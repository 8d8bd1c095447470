// Screen 9: background tasks, their queue, and the action that cancels one.
import { PATHS, type Reply, type TaskRow, type Tasks } from '../../api.ts'
import { clock } from '../data/clock.ts'
import { useResource } from '../data/resource.ts'
import { count, duration, fullTime } from '../data/text.ts'
import { Action, ActionsOff } from '../parts/action.tsx'
import { Badge, type Tone } from '../parts/badge.tsx'
import { Timeline } from '../parts/charts.tsx'
import { timeColumn } from '../parts/columns.tsx'
import { List } from '../parts/list.tsx'
import { Loaded, Scope } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { Code, Facts, Text } from '../parts/text.tsx'

const TONES: Readonly<Record<string, Tone>> = {
  working: 'info',
  input_required: 'warn',
  completed: 'good',
  failed: 'fault',
}

const ENDED: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled'])

const statusText = ({ status }: Pick<TaskRow, 'status'>) => status.replaceAll('_', ' ')

const Status = (row: Pick<TaskRow, 'status'>) => (
  <Badge tone={TONES[row.status] ?? 'plain'}>
    <Text value={statusText(row)} most={30} />
  </Badge>
)

const Duration = (row: TaskRow) => (
  <>{duration((ENDED.has(row.status) ? row.updatedAt : clock.value) - row.createdAt)}</>
)

const ownerText = ({ owner = 'anonymous' }: TaskRow) => owner

const COLUMNS: readonly Column<TaskRow>[] = [
  { title: 'Tool', value: ({ tool }) => tool, cell: ({ tool }) => <Code value={tool} /> },
  { title: 'Status', value: ({ status }) => status, cell: row => <Status {...row} />, width: '9rem' },
  { title: 'Owner', value: ownerText, isExtra: true },
  { title: 'Route', value: ({ route }) => route, isExtra: true },
  timeColumn('Created', ({ createdAt }) => createdAt),
  {
    title: 'Duration',
    value: row => (ENDED.has(row.status) ? row.updatedAt : clock.peek()) - row.createdAt,
    cell: row => <Duration {...row} />,
    width: '7rem',
    isNumber: true,
  },
]

interface DetailsProps {
  readonly row: TaskRow
  readonly onCancelled: () => void
}

function Details({ row, onCancelled }: DetailsProps) {
  const isEnded = ENDED.has(row.status)
  const end = isEnded ? row.updatedAt : clock.value
  const [changed, total] = [row.updatedAt - row.createdAt, end - row.createdAt]
  return (
    <>
      <div>
        <Status {...row} />
      </div>
      <Timeline
        title="Timeline"
        total={total}
        spans={[
          { name: 'created', start: 0, ms: changed, isFault: row.status === 'failed' },
          ...(isEnded ? [] : [{ name: statusText(row), start: changed, ms: total - changed }]),
        ]}
        textOf={duration}
      />
      <Facts
        list={[
          ['Created', fullTime(row.createdAt)],
          ['Last change', fullTime(row.updatedAt)],
          ['Owner', ownerText(row)],
          ['Route', row.route],
        ]}
      />
      {!isEnded && (
        <Action
          label="Cancel task"
          title="Cancel this task?"
          path={PATHS.cancelTask}
          body={{ handle: row.handle, node: row.node }}
          isDanger
          onDone={onCancelled}
        >
          The tool is aborted. Its owner sees the status cancelled.
        </Action>
      )}
      {!isEnded && <ActionsOff />}
    </>
  )
}

export default function TasksScreen() {
  const from = useResource<Reply<Tasks>>(PATHS.tasks, { every: 5 })
  return (
    <Loaded from={from}>
      {data => (
        <List
          noun="task"
          caption="Tasks"
          columns={COLUMNS}
          rows={data.tasks}
          keyOf={({ handle }) => ({ task: handle })}
          filters={[
            {
              name: 'status',
              label: 'Status',
              options: Object.entries(data.counts).map(([status, amount]) => [
                status,
                `${statusText({ status })} (${count(amount)})`,
              ]),
              of: ({ status }) => status,
            },
          ]}
          summary={() => (data.queueAge === undefined ? '' : `Oldest queued task: ${duration(data.queueAge * 1_000)}`)}
          details={{
            title: ({ tool }) => tool,
            content: (row, close) => (
              <Details
                row={row}
                onCancelled={() => {
                  close()
                  from.reload()
                }}
              />
            ),
          }}
        >
          <Scope {...data} />
        </List>
      )}
    </Loaded>
  )
}
