// Screen 1: is the host healthy, how busy is it, and what needs attention.
import { Link } from 'wouter-preact'
import {
  type CallStats,
  type Check,
  type NodeRow,
  type Nodes,
  type Overview,
  PATHS,
  type Reply,
  type ToolStats,
  type Warning,
} from '../../api.ts'
import { lastTick, seconds } from '../data/live.ts'
import { urlOf } from '../data/query.ts'
import { useResource } from '../data/resource.ts'
import { bytes, count, duration, fullTime, milliseconds, percent, plural, rate } from '../data/text.ts'
import { Badge, Dot } from '../parts/badge.tsx'
import { Sparkline } from '../parts/charts.tsx'
import { Loaded, Scope } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import { Code, Facts, Text } from '../parts/text.tsx'

/** Seconds of the sparklines. */
const SHOWN = 300

interface TileProps {
  readonly label: string
  readonly value: string
  readonly unit?: string
  readonly values?: readonly number[]
  readonly isFault?: boolean
}

const Tile = ({ label, value, unit, values, isFault }: TileProps) => (
  <div class="card tile">
    <p class="label">{label}</p>
    <p class="value">
      {value} {unit !== undefined && <small>{unit}</small>}
    </p>
    {values && (
      <Sparkline
        values={values}
        label={`${label}, last ${plural(values.length, 'second')}`}
        isFault={isFault === true}
      />
    )}
  </div>
)

const Tiles = ({ data, now }: { readonly data: Overview; readonly now: CallStats }) => {
  const last = data.history.at(-1)?.at ?? 0
  const history = [...data.history, ...seconds.value.filter(({ at }) => at > last)].slice(-SHOWN)
  const tick = lastTick.value
  return (
    <section class="tiles" aria-label="Last 60 seconds">
      <Tile label="Calls" value={rate(now.callsPerSecond)} unit="/s" values={history.map(({ calls }) => calls)} />
      <Tile label="Errors" value={percent(now.errors)} values={history.map(({ errors }) => errors)} isFault />
      <Tile label="Denials" value={percent(now.denials)} values={history.map(({ denials }) => denials)} isFault />
      <Tile
        label="Latency, p50"
        value={now.p50 === undefined ? '–' : milliseconds(now.p50)}
        values={history.map(({ p50 = 0 }) => p50)}
      />
      <Tile
        label="Latency, p99"
        value={now.p99 === undefined ? '–' : milliseconds(now.p99)}
        values={history.map(({ p99 = 0 }) => p99)}
      />
      <Tile label="In flight" value={count(tick?.inFlight ?? data.inFlight)} unit="calls" />
      <Tile label="Sessions" value={count(tick?.sessions ?? data.sessions)} unit={plural(data.streams, 'stream')} />
    </section>
  )
}

const Checks = ({ checks, ready }: { readonly checks: readonly Check[]; readonly ready: boolean }) => (
  <section class="card">
    <h2>
      <Badge tone={ready ? 'good' : 'fault'}>{ready ? 'Ready' : 'Not ready'}</Badge> Readiness
    </h2>
    {checks.length === 0 && <p class="muted">No plugin has a readiness check.</p>}
    <ul class="rows">
      {checks.map(({ name, ok, reason }) => (
        <li key={name}>
          <Dot tone={ok ? 'good' : 'fault'} />
          <span class="grow wrap">
            <Text value={name} />
            {reason !== undefined && (
              <span class="muted small">
                {' '}
                <Text value={reason} />
              </span>
            )}
          </span>
          <span class="end">{ok ? 'OK' : 'Failed'}</span>
        </li>
      ))}
    </ul>
  </section>
)

const Warnings = ({ warnings }: { readonly warnings: readonly Warning[] }) => (
  <section class="card">
    <h2>Warnings</h2>
    {warnings.length === 0 && <p class="muted">No active warnings.</p>}
    <ul class="rows">
      {warnings.map(({ code, message, fix, at, source, upstream, reason, count: times, firstAt, lastAt }) => (
        <li key={`${code} ${at} ${upstream} ${message}`}>
          <Badge tone="warn">{code}</Badge>
          <div class="grow wrap">
            <p>
              <Text value={message} />
              {upstream !== undefined && (
                <>
                  :{' '}
                  <Link href={urlOf('/upstreams', { server: upstream })}>
                    <Code value={upstream} />
                  </Link>
                </>
              )}
            </p>
            {reason !== undefined && (
              <p class="small">
                <Text value={reason} lines />
              </p>
            )}
            {fix !== undefined && (
              <p class="muted small">
                <Text value={fix} />
              </p>
            )}
            <p class="muted small number">
              {times > 1 && `First ${fullTime(firstAt)}, last `}
              {fullTime(lastAt)}
            </p>
            {(at ?? source) !== undefined && (
              <p class="small">
                {at !== undefined && (
                  <Link href={urlOf('/config', { q: at })}>
                    <Code value={at} />
                  </Link>
                )}{' '}
                {source !== undefined && <Code value={source} />}
              </p>
            )}
          </div>
          {times > 1 && <span class="end number">{count(times)}×</span>}
        </li>
      ))}
    </ul>
  </section>
)

const TopTools = ({ tools }: { readonly tools: readonly ToolStats[] }) => (
  <section class="card">
    <h2>Busiest tools</h2>
    {tools.length === 0 && <p class="muted">No calls yet.</p>}
    <ul class="rows">
      {tools.slice(0, 5).map(({ route, kind, name, calls, errors, p99 }) => (
        <li key={`${route} ${kind} ${name}`}>
          <span class="grow wrap">
            <Link href={urlOf('/calls', { q: name })}>
              <Code value={name} />
            </Link>{' '}
            <span class="muted small">
              <Text value={route} />
            </span>
          </span>
          <span class="end number small">
            {plural(calls, 'call')}
            {errors > 0 && `, ${percent(errors / calls)} errors`}
            {p99 !== undefined && <span class="muted">, p99 {milliseconds(p99)}</span>}
          </span>
        </li>
      ))}
    </ul>
  </section>
)

const Host = ({ data }: { readonly data: Overview }) => (
  <section class="card">
    <h2>Host</h2>
    <Facts
      list={[
        ['mcp-host', data.version],
        ['Node.js', data.nodeVersion],
        // The sum of several nodes has no process id.
        ['Process', data.pid && `${data.pid}${data.processes > 1 ? `, one of ${data.processes} processes` : ''}`],
        ['Uptime', duration(data.uptime * 1_000)],
        ['Memory', `${bytes(data.memory.rss)}, heap ${bytes(data.memory.heapUsed)}`],
        [
          'Plugins',
          <span class="badges">
            {data.plugins.map(name => (
              <Badge key={name}>
                <Text value={name} most={40} />
              </Badge>
            ))}
          </span>,
        ],
      ]}
    />
  </section>
)

function NodeTable() {
  const nodes = useResource<Reply<Nodes>>(PATHS.nodes, { every: 5 })
  const rows = nodes.data?.available ? nodes.data.nodes : []
  if (rows.length < 2) return null
  return (
    <Table<NodeRow>
      caption="Nodes"
      rows={rows}
      keyOf={({ name, pid }) => `${name} ${pid}`}
      columns={[
        {
          title: 'Node',
          cell: ({ name, self }) => (
            <>
              <Text value={name} /> {self && <Badge tone="info">this page</Badge>}
            </>
          ),
        },
        { title: 'Calls/s', cell: ({ callsPerSecond }) => rate(callsPerSecond), isNumber: true, width: '6rem' },
        { title: 'Sessions', cell: ({ sessions }) => count(sessions), isNumber: true, width: '6rem' },
        {
          title: 'Uptime',
          cell: ({ uptime }) => duration(uptime * 1_000),
          isNumber: true,
          isExtra: true,
          width: '9rem',
        },
        { title: 'Process', cell: ({ pid }) => pid, isNumber: true, isExtra: true, width: '7rem' },
        { title: 'Version', cell: ({ version }) => version, isExtra: true, width: '7rem' },
      ]}
    />
  )
}

export default function OverviewScreen() {
  const overview = useResource<Reply<Overview>>(PATHS.overview, { every: 5 })
  return (
    <Loaded from={overview}>
      {data => (
        <>
          <div class="tools">
            <Scope {...data} />
          </div>
          <Tiles data={data} now={lastTick.value?.now ?? data.now} />
          <div class="halves">
            <Warnings warnings={data.warnings} />
            <TopTools tools={data.topTools} />
            <Checks checks={data.checks} ready={lastTick.value?.ready ?? data.ready} />
            <Host data={data} />
          </div>
          <NodeTable />
        </>
      )}
    </Loaded>
  )
}
