// Upstream servers by node: state, last error, items and sessions.
import { Link } from 'wouter-preact'
import { PATHS, type Reply, shellWord, type UpstreamRow, type Upstreams } from '../../api.ts'
import { useResource } from '../data/resource.ts'
import { count, fullTime, plural } from '../data/text.ts'
import { Badge, type Tone } from '../parts/badge.tsx'
import { commandOf, RouteLink } from '../parts/calls.tsx'
import { agoColumn, withNodes } from '../parts/columns.tsx'
import { Commands } from '../parts/copy.tsx'
import { List } from '../parts/list.tsx'
import { Loaded, Scope } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { Code, Facts, Optional, Text, WithheldItems } from '../parts/text.tsx'

const STATES: Readonly<Record<UpstreamRow['state'], readonly [Tone, string]>> = {
  up: ['good', 'Up'],
  connecting: ['info', 'Connecting'],
  'not connected': ['plain', 'Not connected'],
  'needs login': ['warn', 'Needs login'],
  down: ['fault', 'Down'],
  'crash loop': ['fault', 'Crash loop'],
}

const State = ({ state, withheldCount }: UpstreamRow) => {
  const [tone, label] = STATES[state]
  return (
    <>
      <Badge tone={tone}>{label}</Badge>{' '}
      {withheldCount > 0 && <Badge tone="warn">{count(withheldCount)} withheld</Badge>}
    </>
  )
}

const protocolText = ({ revision, era }: UpstreamRow) =>
  revision && (era === 'legacy' ? `${revision} (legacy)` : revision)

const COLUMNS: readonly Column<UpstreamRow>[] = [
  { title: 'Server', value: ({ name }) => name, cell: ({ name }) => <Code value={name} /> },
  { title: 'State', value: ({ state }) => state, cell: row => <State {...row} />, width: '13rem' },
  { title: 'Transport', value: ({ transport }) => transport, width: '7rem', isExtra: true },
  { title: 'Protocol', value: protocolText, width: '12.5rem', isExtra: true },
  { title: 'Tools', value: ({ tools }) => tools, isNumber: true, width: '5rem', isExtra: true },
  { title: 'Sessions', value: ({ sessions }) => sessions, isNumber: true, width: '6rem', isExtra: true },
  agoColumn('Last error', ({ lastError }) => lastError?.at),
  {
    title: 'Reason',
    value: ({ lastError }) => lastError?.reason,
    cell: ({ lastError }) => <Optional value={lastError?.reason.split('\n')[0]} none="" />,
    isExtra: true,
  },
]

const Details = ({ row }: { readonly row: UpstreamRow }) => (
  <>
    <div class="badges">
      <State {...row} />
    </div>
    {row.lastError && (
      <div class={row.state === 'up' ? 'note warn' : 'note fault'}>
        <div class="wrap">
          <strong>Last error</strong> <span class="number">{fullTime(row.lastError.at)}</span>
          <p>
            <Text value={row.lastError.reason} lines />
          </p>
        </div>
      </div>
    )}
    <Facts
      list={[
        ['In this state since', fullTime(row.since)],
        ['Next attempt', row.nextAttempt && fullTime(row.nextAttempt)],
        ['Server', row.server],
        [row.transport === 'http' ? 'URL' : 'Program', <Code value={row.target} />],
        ['Transport', row.transport],
        ['Protocol version', protocolText(row)],
        [
          'Served',
          [plural(row.tools, 'tool'), plural(row.resources, 'resource'), plural(row.prompts, 'prompt')].join(', '),
        ],
        ['Sessions', count(row.sessions)],
        [
          'Calls',
          `${count(row.activeCalls)} active, ${count(row.queuedCalls)} queued, ${count(row.heldCalls)} waiting for the client`,
        ],
        [
          'Routes',
          row.routes.length > 0 && (
            <span class="badges">
              {row.routes.map(route => (
                <RouteLink key={route} route={route} />
              ))}
            </span>
          ),
        ],
        ['Node', row.node],
      ]}
    />
    {row.withheldCount > 0 && (
      <section class="stack">
        <h3>Withheld</h3>
        <WithheldItems items={row.withheld} />
        {row.withheldCount > row.withheld.length && (
          <p class="small muted">{count(row.withheldCount - row.withheld.length)} more are not listed.</p>
        )}
        <Link class="button" href="/tools">
          Show definitions
        </Link>
        <Commands list={[{ label: 'Review and accept', command: commandOf(`accept ${shellWord(row.name)}`) }]} />
      </section>
    )}
  </>
)

export default function UpstreamsScreen() {
  const upstreams = useResource<Reply<Upstreams>>(PATHS.upstreams, { every: 5 })
  return (
    <Loaded from={upstreams}>
      {data => (
        <>
          <List
            noun="server"
            caption="Upstream servers"
            columns={withNodes(COLUMNS, data, ({ node }) => node)}
            rows={data.servers}
            keyOf={({ name, node }) => ({ server: name, at: node })}
            textOf={({ name, target, lastError }) => [name, target, lastError?.reason].join('\n')}
            placeholder="name, URL, error"
            summary={shown => (shown === data.total ? '' : `${count(shown)} of `) + plural(data.total, 'server')}
            filters={[
              {
                name: 'state',
                label: 'State',
                options: Object.entries(STATES).map(([state, [, label]]) => [state, label]),
                of: ({ state }) => state,
              },
            ]}
            details={{ title: ({ name }) => name, content: row => <Details row={row} /> }}
          >
            <Scope {...data} />
          </List>
          <Commands list={data.commands} />
        </>
      )}
    </Loaded>
  )
}
