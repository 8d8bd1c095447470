// Screen 10: clients by version, protocol version and transport, legacy use, and clients and grants of auth-bridge.
import {
  type ClientRow,
  type Clients,
  type GrantRow,
  type Grants,
  type LegacyUse,
  type OAuthClientRow,
  PATHS,
  type Reply,
} from '../../api.ts'
import { useResource } from '../data/resource.ts'
import { count, fullTime, percent } from '../data/text.ts'
import { Badge } from '../parts/badge.tsx'
import { commandOf } from '../parts/calls.tsx'
import { agoColumn, timeColumn, withNodes } from '../parts/columns.tsx'
import { Commands } from '../parts/copy.tsx'
import { List } from '../parts/list.tsx'
import { Loaded, Scope } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { Code, Facts } from '../parts/text.tsx'

const COLUMNS: readonly Column<ClientRow>[] = [
  { title: 'Client', value: ({ name }) => name },
  { title: 'Version', value: ({ version }) => version, width: '8rem', isExtra: true },
  { title: 'Protocol', value: ({ revision }) => revision, width: '8rem' },
  { title: 'Transport', value: ({ transport }) => transport, isExtra: true },
  { title: 'Calls', value: ({ calls }) => calls, cell: ({ calls }) => count(calls), isNumber: true, width: '6rem' },
  agoColumn('Last call', ({ lastAt }) => lastAt),
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

const REGISTRATIONS: Readonly<Record<OAuthClientRow['from'], string>> = {
  config: 'Config',
  document: 'Metadata document',
  registration: 'Dynamic registration',
}

const OAUTH_CLIENT_COLUMNS: readonly Column<OAuthClientRow>[] = [
  { title: 'Client', value: ({ name }) => name },
  { title: 'Id', value: ({ id }) => id, cell: ({ id }) => <Code value={id} /> },
  { title: 'Registered by', value: ({ from }) => REGISTRATIONS[from], width: '12rem', isExtra: true },
  { title: 'Users', value: ({ users }) => users, isNumber: true, width: '6rem' },
  { title: 'Grants', value: ({ grants }) => grants, isNumber: true, width: '6rem', isExtra: true },
  timeColumn('First grant', ({ firstAt }) => firstAt),
]

const GRANT_COLUMNS: readonly Column<GrantRow>[] = [
  { title: 'Client', value: ({ client }) => client.name ?? client.id },
  { title: 'User', value: ({ user }) => user },
  { title: 'Scopes', value: ({ scopes }) => scopes.join(' '), isExtra: true },
  timeColumn('Granted', ({ createdAt }) => createdAt),
  agoColumn('Last tokens', ({ usedAt }) => usedAt, { isExtra: false, none: 'none' }),
]

function OAuth() {
  const grants = useResource<Reply<Grants>>(PATHS.grants, { every: 30 })
  return (
    <section class="stack">
      <h2>OAuth clients and grants</h2>
      <Loaded from={grants}>
        {data => (
          <>
            <List
              noun="OAuth client"
              caption="OAuth clients"
              columns={OAUTH_CLIENT_COLUMNS}
              rows={data.clients}
              keyOf={({ id }) => ({ oauth: id })}
            />
            <List
              noun="grant"
              caption="Grants"
              columns={GRANT_COLUMNS}
              rows={data.grants}
              keyOf={({ client, user, createdAt }) => ({ grant: `${client.id} ${user} ${createdAt}` })}
            >
              {data.cut && <Badge tone="warn">Newest only</Badge>}
            </List>
          </>
        )}
      </Loaded>
    </section>
  )
}

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
            columns={withNodes(COLUMNS, data, ({ nodes }) => nodes?.join(', '))}
            rows={data.clients}
            keyOf={({ name, version, revision, transport }) => ({ name, version, revision, transport })}
            summary={() => (data.other > 0 ? `${count(data.other)} calls of clients without a row` : '')}
          >
            <Scope {...data} />
          </List>
          <Commands list={[{ label: 'Same from access logs', command: commandOf('report access.log') }]} />
          <OAuth />
        </>
      )}
    </Loaded>
  )
}
