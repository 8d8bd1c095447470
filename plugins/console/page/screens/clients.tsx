// Screen 10: clients by version, protocol version and transport, and the use of legacy features.
import { type ClientRow, type Clients, type LegacyUse, PATHS, type Reply } from '../../api.ts'
import { clock } from '../data/clock.ts'
import { useResource } from '../data/resource.ts'
import { count, duration, fullTime, percent } from '../data/text.ts'
import { Badge } from '../parts/badge.tsx'
import { Commands } from '../parts/copy.tsx'
import { Empty, Loaded, Scope } from '../parts/states.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'

const COLUMNS: readonly Column<ClientRow>[] = [
  { title: 'Client', cell: ({ name }) => <Text value={name} />, by: ({ name }) => name },
  {
    title: 'Version',
    cell: ({ version }) => <Text value={version} />,
    by: ({ version }) => version,
    width: '8rem',
    isExtra: true,
  },
  {
    title: 'Protocol',
    cell: ({ revision }) => <Text value={revision} />,
    by: ({ revision }) => revision,
    width: '8rem',
  },
  {
    title: 'Transport',
    cell: ({ transport }) => <Text value={transport} />,
    by: ({ transport }) => transport,
    isExtra: true,
  },
  { title: 'Calls', cell: ({ calls }) => count(calls), by: ({ calls }) => calls, isNumber: true, width: '6rem' },
  {
    title: 'Last call',
    cell: ({ lastAt }) => `${duration(clock.value - lastAt)} ago`,
    by: ({ lastAt }) => lastAt,
    isNumber: true,
    width: '9rem',
    isExtra: true,
  },
]

const share = (part: number, all: number) => `${count(part)} (${all === 0 ? '0 %' : percent(part / all)})`

const Legacy = ({ legacy }: { readonly legacy: LegacyUse }) => (
  <section class="card">
    <h2>Legacy use</h2>
    <dl class="facts">
      <dt>Since</dt>
      <dd class="number">{fullTime(legacy.since)}</dd>
      <dt>Handshake versions</dt>
      <dd class="number">{share(legacy.handshake, legacy.calls)}</dd>
      <dt>HTTP+SSE</dt>
      <dd class="number">{share(legacy.sse, legacy.calls)}</dd>
      {legacy.sseNeeded !== undefined && (
        <>
          <dt>transport-sse</dt>
          <dd>
            {legacy.sseNeeded ? (
              <Badge tone="warn">In use</Badge>
            ) : (
              <>
                <Badge tone="good">Not used</Badge> No client used it since then.
              </>
            )}
          </dd>
        </>
      )}
    </dl>
  </section>
)

export default function ClientsScreen() {
  const clients = useResource<Reply<Clients>>(PATHS.clients, { every: 5 })
  return (
    <Loaded from={clients}>
      {data => (
        <>
          <div class="tools">
            <Scope {...data} />
            {data.other > 0 && <span class="muted small">{count(data.other)} calls of clients without a row</span>}
          </div>
          <Legacy legacy={data.legacy} />
          {data.clients.length === 0 ? (
            <Empty title="No clients yet" />
          ) : (
            <Table
              caption="Clients"
              columns={COLUMNS}
              rows={data.clients}
              keyOf={({ name, version, revision, transport }) => [name, version, revision, transport].join('\n')}
            />
          )}
          <Commands list={[{ label: 'Same from access logs', command: 'mcp-host report access.log' }]} />
        </>
      )}
    </Loaded>
  )
}
