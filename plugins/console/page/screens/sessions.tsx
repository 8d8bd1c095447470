// Screen 8: open sessions and streams, with the action that ends a session.
import { PATHS, type Reply, type SessionRow, type Sessions } from '../../api.ts'
import { clock } from '../data/clock.ts'
import { useResource } from '../data/resource.ts'
import { bytes, count, duration, fullTime, plural } from '../data/text.ts'
import { Action, ActionsOff } from '../parts/action.tsx'
import { clientText } from '../parts/calls.tsx'
import { List } from '../parts/list.tsx'
import { Loaded, Scope } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { Facts } from '../parts/text.tsx'

const ownerText = ({ owner = 'anonymous' }: SessionRow) => owner

const COLUMNS: readonly Column<SessionRow>[] = [
  { title: 'Client', value: row => clientText(row) ?? 'not stated' },
  { title: 'Owner', value: ownerText, isExtra: true },
  { title: 'Route', value: ({ route }) => route, isExtra: true },
  { title: 'Version', value: ({ revision }) => revision, width: '8rem', isExtra: true },
  { title: 'Transport', value: ({ transport }) => transport, isExtra: true },
  { title: 'Node', value: ({ node }) => node, isExtra: true },
  { title: 'Streams', value: ({ streams }) => streams, isNumber: true, width: '6rem' },
  {
    title: 'Idle',
    cell: ({ lastUsedAt }) => duration(clock.value - lastUsedAt),
    value: ({ lastUsedAt }) => -lastUsedAt,
    isNumber: true,
    width: '7rem',
  },
]

interface DetailsProps {
  readonly row: SessionRow
  readonly onEnded: () => void
}

const Details = ({ row, onEnded }: DetailsProps) => (
  <>
    <Facts
      list={[
        ['Last used', fullTime(row.lastUsedAt)],
        ['Owner', ownerText(row)],
        ['Route', row.route],
        ['Protocol version', row.revision],
        ['Transport', row.transport],
        ['Open streams', row.streams],
        ['Node', row.node],
      ]}
    />
    <Action
      label="End session"
      title="End this session?"
      path={PATHS.endSession}
      body={{ handle: row.handle, node: row.node }}
      isDanger
      onDone={onEnded}
    >
      The client must open a new session. Calls that run in this session are cancelled.
    </Action>
    <ActionsOff />
  </>
)

export default function SessionsScreen() {
  const from = useResource<Reply<Sessions>>(PATHS.sessions, { every: 5 })
  return (
    <Loaded from={from}>
      {data => (
        <List
          noun="session"
          caption="Sessions"
          columns={COLUMNS}
          rows={data.sessions}
          keyOf={({ handle }) => ({ session: handle })}
          textOf={row => [clientText(row), ownerText(row), row.route, row.node].join('\n')}
          placeholder="client, owner, route, node"
          summary={shown =>
            `${plural(data.total, 'session')}, ${plural(data.streams, 'stream')}, ${bytes(data.waitingBytes)} waiting` +
            (data.total > shown ? `, ${count(shown)} listed` : '')
          }
          hint={<p>Clients of stateless routes and of the current protocol version open none.</p>}
          details={{
            title: row => clientText(row) ?? 'Session',
            content: (row, close) => (
              <Details
                row={row}
                onEnded={() => {
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
