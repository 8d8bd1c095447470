// Screen 10: clients by version, protocol version and transport, and the use of legacy features.
import { type ClientRow, type Clients, type LegacyUse, PATHS, type Reply } from '../../api.ts'
import { clock } from '../data/clock.ts'
import { useResource } from '../data/resource.ts'
import { count, duration, fullTime, percent } from '../data/text.ts'
import { Badge } from '../parts/badge.tsx'
import { Commands } from '../parts/copy.tsx'
import { List } from '../parts/list.tsx'
import { Loaded, Scope } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { Facts } from '../parts/text.tsx'

const NODES: Column<ClientRow> = { title: 'Nodes', value: ({ nodes }) => nodes?.join(', '), isExtra: true }

const COLUMNS: readonly Column<ClientRow>[] = [
  { title: 'Client', value: ({ name }) => name },
  { title: 'Version', value: ({ version }) => version, width: '8rem', isExtra: true },
  { title: 'Protocol', value: ({ revision }) => revision, width: '8rem' },
  { title: 'Transport', value: ({ transport }) => transport, isExtra: true },
  { title: 'Calls', value: ({ calls }) => calls, cell: ({ calls }) => count(calls), isNumber: true, width: '6rem' },
  {
    title: 'Last call',
    value: ({ lastAt }) => lastAt,
    cell: ({ lastAt }) => `${duration(clock.value - lastAt)} ago`,
    isNumber: true,
    width: '9rem',
    isExtra: true,
  },
]

const share = (part: number, all: number) => `${count(part)} (${all === 0 ? '0 %' : percent(part / all)})`

const Needed = ({ isNeeded }: { readonly isNeeded: boolean }) =>
  isNeeded ? (
    <Badge tone="warn">In use</Badge>
  ) : (
    <>
      <Badge tone="good">Not used</Badge> No client used it since then.
    </>
  )

const Legacy = ({ legacy: { since, handshake, sse, calls, sseNeeded } }: { readonly legacy: LegacyUse }) => (
  <section class="card">
    <h2>Legacy use</h2>
    <Facts
      list={[
        ['Since', fullTime(since)],
        ['Handshake versions', share(handshake, calls)],
        ['HTTP+SSE', share(sse, calls)],
        ...(sseNeeded === undefined ? [] : [['transport-sse', <Needed isNeeded={sseNeeded} />] as const]),
      ]}
    />
  </section>
)

export default function ClientsScreen() {
  const clients = useResource<Reply<Clients>>(PATHS.clients, { every: 5 })
  return (
    <Loaded from={clients}>
      {data => (
        <>
          <Legacy legacy={data.legacy} />
          <List
            noun="client"
            caption="Clients"
            columns={data.nodeStates ? [...COLUMNS, NODES] : COLUMNS}
            rows={data.clients}
            keyOf={({ name, version, revision, transport }) => ({ name, version, revision, transport })}
            summary={() => (data.other > 0 ? `${count(data.other)} calls of clients without a row` : '')}
          >
            <Scope {...data} />
          </List>
          <Commands list={[{ label: 'Same from access logs', command: 'mcp-host report access.log' }]} />
        </>
      )}
    </Loaded>
  )
}
