// Screen 2: the routes, who may use each, and how to connect a client.
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { PATHS, type Reply, type RouteRow, type Routes, shellWord } from '../../api.ts'
import { urlOf } from '../data/query.ts'
import { useResource } from '../data/resource.ts'
import { count, plural } from '../data/text.ts'
import { Badge } from '../parts/badge.tsx'
import { commandOf } from '../parts/calls.tsx'
import { CodeBlock, Commands } from '../parts/copy.tsx'
import { Choice, List } from '../parts/list.tsx'
import { Loaded } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { Code, Facts } from '../parts/text.tsx'

const OpenBadge = ({ open }: RouteRow) => <Badge tone={open ? 'warn' : 'good'}>{open ? 'Open' : 'Protected'}</Badge>

const COLUMNS: readonly Column<RouteRow>[] = [
  { title: 'Route', value: ({ path }) => path, cell: ({ path }) => <Code value={path} /> },
  { title: 'Access', cell: route => <OpenBadge {...route} />, width: '7.5rem' },
  { title: 'Callers', value: ({ callers }) => callers, isExtra: true },
  { title: 'Tools', value: ({ tools }) => tools, isNumber: true, width: '5rem' },
  { title: 'Toolsets', value: ({ toolsets }) => toolsets.join(', '), isExtra: true },
  { title: 'Transports', value: ({ transports }) => transports.join(', '), isExtra: true },
  { title: 'Sessions', value: ({ stateless }) => (stateless ? 'stateless' : 'yes'), isExtra: true, width: '7rem' },
]

/** The command that adds a route to a client. */
function Connect({ route, clients }: DetailsProps) {
  const [chosen, setChosen] = useState(clients[0]?.id ?? '')
  return (
    <section class="stack">
      <Choice
        label="Connect"
        value={chosen}
        options={clients.map(({ id, title }) => [id, title])}
        onChange={setChosen}
      />
      <CodeBlock text={commandOf(`connect ${shellWord(chosen)} ${shellWord(route.url)}`)} what="the command" />
    </section>
  )
}

interface DetailsProps {
  readonly route: RouteRow
  readonly clients: Routes['clients']
}

const Details = ({ route, clients }: DetailsProps) => (
  <>
    <div class="badges">
      <OpenBadge {...route} />
      <Badge>{plural(route.tools, 'tool')}</Badge>
      {route.withheld > 0 && <Badge tone="warn">{count(route.withheld)} withheld</Badge>}
      {route.stateless && <Badge>Stateless</Badge>}
      {!route.listen && <Badge tone="warn">Not listening</Badge>}
    </div>
    <CodeBlock text={route.url} what="the URL" />
    <Facts
      list={[
        ['Callers', route.callers],
        ['Authentication', route.authenticators.join(', ')],
        ['Issuers', route.issuers.join(', ')],
        ['Toolsets', route.toolsets.join(', ')],
        ['Transports', route.transports.join(', ')],
        ['Protocol versions', route.revisions.join(', ')],
        ['Overrides', route.overrides.join(', ')],
      ]}
    />
    <div class="tools">
      <Link class="button" href={urlOf('/tools', { route: route.path })}>
        Show tools
      </Link>
      <Link class="button" href={urlOf('/access', { path: route.samplePath })}>
        Show access
      </Link>
      <Link class="button" href={urlOf('/calls', { q: route.path })}>
        Show calls
      </Link>
    </div>
    <Connect route={route} clients={clients} />
    <Commands list={route.commands} />
  </>
)

export default function RoutesScreen() {
  const routes = useResource<Reply<Routes>>(PATHS.routes)
  return (
    <Loaded from={routes}>
      {data => (
        <List
          noun="route"
          caption="Routes"
          columns={COLUMNS}
          rows={data.routes}
          keyOf={({ path }) => ({ route: path })}
          details={{ title: ({ path }) => path, content: route => <Details route={route} clients={data.clients} /> }}
        />
      )}
    </Loaded>
  )
}
