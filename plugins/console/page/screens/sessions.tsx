// Screen 8: open sessions and streams, with the action that ends a session.
import { PATHS, type Reply, type SessionRow, type Sessions } from '../../api.ts'
import { clock } from '../data/clock.ts'
import { useQuery } from '../data/query.ts'
import { useResource } from '../data/resource.ts'
import { bytes, count, duration, fullTime, plural } from '../data/text.ts'
import { Action, ActionsOff } from '../parts/action.tsx'
import { clientText } from '../parts/calls.tsx'
import { Drawer } from '../parts/dialogs.tsx'
import { Empty, Loaded, Scope } from '../parts/states.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Optional, Text } from '../parts/text.tsx'

const since = (at: number | undefined) => (at === undefined ? '–' : duration(clock.value - at))

const COLUMNS: readonly Column<SessionRow>[] = [
  {
    title: 'Client',
    cell: row => <Optional value={clientText(row)} none="not stated" />,
    by: row => clientText(row) ?? '',
  },
  { title: 'Owner', cell: ({ owner }) => <Optional value={owner} none="anonymous" />, isExtra: true },
  { title: 'Route', cell: ({ route }) => <Text value={route} />, by: ({ route }) => route, isExtra: true },
  { title: 'Version', cell: ({ revision }) => <Optional value={revision} />, width: '8rem', isExtra: true },
  { title: 'Transport', cell: ({ transport }) => <Optional value={transport} />, isExtra: true },
  { title: 'Node', cell: ({ node }) => <Text value={node} />, isExtra: true },
  { title: 'Streams', cell: ({ streams }) => streams, by: ({ streams }) => streams, isNumber: true, width: '6rem' },
  {
    title: 'Age',
    cell: ({ openedAt }) => since(openedAt),
    by: ({ openedAt = 0 }) => openedAt,
    isNumber: true,
    width: '7rem',
  },
  {
    title: 'Idle',
    cell: ({ lastUsedAt }) => since(lastUsedAt),
    by: ({ lastUsedAt = 0 }) => lastUsedAt,
    isNumber: true,
    width: '7rem',
    isExtra: true,
  },
]

interface DrawerProps {
  readonly row: SessionRow
  readonly onClose: () => void
  readonly onEnded: () => void
}

const SessionDrawer = ({ row, onClose, onEnded }: DrawerProps) => (
  <Drawer title={<Optional value={clientText(row)} none="Session" />} onClose={onClose}>
    <dl class="facts">
      <dt>Opened</dt>
      <dd class="number">{row.openedAt === undefined ? '–' : fullTime(row.openedAt)}</dd>
      <dt>Last used</dt>
      <dd class="number">{row.lastUsedAt === undefined ? '–' : fullTime(row.lastUsedAt)}</dd>
      <dt>Owner</dt>
      <dd>
        <Optional value={row.owner} none="anonymous" />
      </dd>
      <dt>Route</dt>
      <dd>
        <Text value={row.route} />
      </dd>
      <dt>Protocol version</dt>
      <dd>
        <Optional value={row.revision} />
      </dd>
      <dt>Transport</dt>
      <dd>
        <Optional value={row.transport} />
      </dd>
      <dt>Open streams</dt>
      <dd>{row.streams}</dd>
      <dt>Node</dt>
      <dd>
        <Text value={row.node} />
      </dd>
    </dl>
    <Action
      label="End session"
      title="End this session?"
      path={PATHS.endSession}
      body={{ handle: row.handle }}
      isDanger
      onDone={onEnded}
    >
      The client must open a new session. Calls that run in this session are cancelled.
    </Action>
    <ActionsOff />
  </Drawer>
)

export default function SessionsScreen() {
  const sessions = useResource<Reply<Sessions>>(PATHS.sessions, { every: 5 })
  const [query, change] = useQuery()
  return (
    <Loaded from={sessions}>
      {data => {
        const opened = data.sessions.find(({ handle }) => handle === query.get('session'))
        const close = () => change({ session: undefined })
        return (
          <>
            <div class="tools">
              <Scope {...data} />
              <span class="muted small number">
                {plural(data.total, 'session')}, {plural(data.streams, 'stream')}, {bytes(data.waitingBytes)} waiting
                {data.total > data.sessions.length && `, ${count(data.sessions.length)} listed`}
              </span>
            </div>
            {data.sessions.length === 0 ? (
              <Empty title="No open sessions">
                <p>Clients of stateless routes and of the current protocol version open none.</p>
              </Empty>
            ) : (
              <Table
                caption="Sessions"
                columns={COLUMNS}
                rows={data.sessions}
                keyOf={({ handle }) => handle}
                onOpen={({ handle }) => change({ session: handle })}
              />
            )}
            {opened && (
              <SessionDrawer
                row={opened}
                onClose={close}
                onEnded={() => {
                  close()
                  sessions.reload()
                }}
              />
            )}
          </>
        )
      }}
    </Loaded>
  )
}
