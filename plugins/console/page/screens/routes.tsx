// Screen 2: the routes, who may use each, and how to connect a client.
import { Link } from 'wouter-preact'
import { PATHS, type Reply, type RouteRow, type Routes } from '../../api.ts'
import { urlOf, useQuery } from '../data/query.ts'
import { useResource } from '../data/resource.ts'
import { count, plural } from '../data/text.ts'
import { Badge } from '../parts/badge.tsx'
import { CodeBlock, Commands } from '../parts/copy.tsx'
import { Drawer } from '../parts/dialogs.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Code, Optional, Text } from '../parts/text.tsx'

const OpenBadge = ({ open }: RouteRow) => <Badge tone={open ? 'warn' : 'good'}>{open ? 'Open' : 'Protected'}</Badge>

const COLUMNS: readonly Column<RouteRow>[] = [
  { title: 'Route', cell: ({ path }) => <Code value={path} />, by: ({ path }) => path },
  { title: 'Access', cell: route => <OpenBadge {...route} />, width: '7.5rem' },
  { title: 'Callers', cell: ({ callers }) => <Text value={callers} />, isExtra: true },
  { title: 'Tools', cell: ({ tools }) => count(tools), by: ({ tools }) => tools, isNumber: true, width: '5rem' },
  { title: 'Toolsets', cell: ({ toolsets }) => <Optional value={toolsets.join(', ')} />, isExtra: true },
  { title: 'Transports', cell: ({ transports }) => <Optional value={transports.join(', ')} />, isExtra: true },
  { title: 'Sessions', cell: ({ stateless }) => (stateless ? 'stateless' : 'yes'), isExtra: true, width: '7rem' },
]

const list = (values: readonly string[]) => <Optional value={values.join(', ')} none="none" />

const RouteDrawer = ({ route, onClose }: { readonly route: RouteRow; readonly onClose: () => void }) => (
  <Drawer title={<Text value={route.path} />} onClose={onClose}>
    <div class="badges">
      <OpenBadge {...route} />
      <Badge>{plural(route.tools, 'tool')}</Badge>
      {route.stateless && <Badge>Stateless</Badge>}
      {!route.listen && <Badge tone="warn">Not listening</Badge>}
    </div>
    <CodeBlock text={route.url} what="the URL" />
    <dl class="facts">
      <dt>Callers</dt>
      <dd>
        <Text value={route.callers} />
      </dd>
      <dt>Authentication</dt>
      <dd>{list(route.authenticators)}</dd>
      <dt>Issuers</dt>
      <dd>{list(route.issuers)}</dd>
      <dt>Toolsets</dt>
      <dd>{list(route.toolsets)}</dd>
      <dt>Transports</dt>
      <dd>{list(route.transports)}</dd>
      <dt>Protocol versions</dt>
      <dd>{list(route.revisions)}</dd>
      <dt>Overrides</dt>
      <dd>{list(route.overrides)}</dd>
    </dl>
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
    <Commands list={route.commands} />
  </Drawer>
)

export default function RoutesScreen() {
  const routes = useResource<Reply<Routes>>(PATHS.routes)
  const [query, change] = useQuery()
  return (
    <Loaded from={routes}>
      {data => {
        const opened = data.routes.find(({ path }) => path === query.get('route'))
        return (
          <>
            {data.routes.length === 0 ? (
              <Empty title="No routes">
                <p>
                  The config has no <code>routes</code>.
                </p>
              </Empty>
            ) : (
              <Table
                caption="Routes"
                columns={COLUMNS}
                rows={data.routes}
                keyOf={({ path }) => path}
                onOpen={({ path }) => change({ route: path })}
              />
            )}
            {opened && <RouteDrawer route={opened} onClose={() => change({ route: undefined })} />}
          </>
        )
      }}
    </Loaded>
  )
}
