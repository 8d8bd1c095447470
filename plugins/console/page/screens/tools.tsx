// Screen 3: tools, resources and prompts with their definitions, figures, and changes since the lock.
import { Link } from 'wouter-preact'
import {
  type LockChange,
  type LockState,
  PATHS,
  type Reply,
  type Surface,
  type SurfaceItem,
  type ToolStats,
} from '../../api.ts'
import { urlOf } from '../data/query.ts'
import { useResource } from '../data/resource.ts'
import { objectIn } from '../data/schema.ts'
import { me } from '../data/session.ts'
import { count, fullTime, json, milliseconds, percent, plural } from '../data/text.ts'
import { Badge } from '../parts/badge.tsx'
import { RouteLink } from '../parts/calls.tsx'
import { CodeBlock, Commands } from '../parts/copy.tsx'
import { List } from '../parts/list.tsx'
import { Loaded } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { Code, Facts, Text, WithheldItems } from '../parts/text.tsx'

interface Row extends SurfaceItem {
  readonly figures: ToolStats | undefined
  readonly changes: readonly LockChange[]
}

const KINDS = { tools: 'Tool', resources: 'Resource', prompts: 'Prompt' } as const

function rowsOf({ items, figures, lock }: Surface): Row[] {
  const measured = new Map(figures.map(one => [`${one.route} ${one.kind} ${one.name}`, one]))
  return items.map(item => ({
    ...item,
    figures: measured.get(`${item.route} ${item.kind} ${item.name}`),
    changes: lock.changes.filter(
      ({ path, kind, name }) => path === item.path && kind === item.kind && name === item.name,
    ),
  }))
}

const Needs = ({ needs }: SurfaceItem) =>
  needs.length === 0 ? <span class="muted">any caller of the route</span> : <Text value={needs.join(', ')} />

const rateOf = ({ figures }: Row) => (figures && figures.calls > 0 ? figures.errors / figures.calls : undefined)
const time = (value: number | undefined) => value && milliseconds(value)

const COLUMNS: readonly Column<Row>[] = [
  {
    title: 'Name',
    value: ({ name }) => name,
    cell: ({ name, changes, withheld }) => (
      <>
        <Code value={name} /> {changes.length > 0 && <Badge tone="warn">changed</Badge>}
        {withheld !== undefined && <Badge tone="fault">withheld</Badge>}
      </>
    ),
  },
  { title: 'Kind', value: ({ kind }) => KINDS[kind], width: '6.5rem', isExtra: true },
  {
    title: 'Route',
    value: ({ path }) => path,
    cell: ({ path }) => <Code value={path} />,
    width: '9rem',
    isExtra: true,
  },
  { title: 'Requires', cell: item => <Needs {...item} />, isExtra: true },
  {
    title: 'Calls',
    value: ({ figures }) => figures?.calls ?? 0,
    cell: ({ figures }) => count(figures?.calls ?? 0),
    isNumber: true,
    width: '5.5rem',
  },
  {
    title: 'Errors',
    value: row => rateOf(row) ?? 0,
    cell: row => (rateOf(row) === undefined ? undefined : percent(rateOf(row) ?? 0)),
    isNumber: true,
    width: '5.5rem',
  },
  ...(['p50', 'p99'] as const).map(name => ({
    title: name,
    value: ({ figures }: Row) => figures?.[name] ?? 0,
    cell: ({ figures }: Row) => time(figures?.[name]),
    isNumber: true,
    isExtra: true,
    width: '6rem',
  })),
]

const LOCK_STATES: Readonly<Record<LockState['state'], readonly ['good' | 'warn' | 'plain' | 'fault', string]>> = {
  none: ['plain', 'No lock file'],
  same: ['good', 'Matches the lock file'],
  changed: ['warn', 'Changed since the lock file'],
  unreadable: ['fault', 'Lock file unreadable'],
}

const LockBadge = ({ lock }: { readonly lock: LockState }) => {
  const [tone, text] = LOCK_STATES[lock.state]
  return (
    <Badge tone={tone}>
      {text}
      {lock.changes.length > 0 && `: ${plural(lock.changes.length, 'change')}`}
    </Badge>
  )
}

const HINTS: ReadonlyArray<readonly [string, string, 'good' | 'warn' | 'plain']> = [
  ['readOnlyHint', 'read-only', 'good'],
  ['destructiveHint', 'destructive', 'warn'],
  ['idempotentHint', 'idempotent', 'plain'],
  ['openWorldHint', 'open world', 'plain'],
]

const SHOWN = {
  inputSchema: 'Input schema',
  outputSchema: 'Output schema',
  arguments: 'Arguments',
  annotations: 'Annotations',
} as const

const Impact = ({ impact }: LockChange) => (
  <Badge tone="warn">
    <Text value={impact} most={30} />
  </Badge>
)

/** The previous and new values of a change. */
const Values = ({ diff }: LockChange) => diff !== undefined && <CodeBlock text={diff} what="the values" />

function Details({ item }: { readonly item: Row }) {
  const { shown, figures } = item
  const annotations = objectIn(shown, 'annotations')
  return (
    <>
      <div class="badges">
        <Badge>
          {KINDS[item.kind]}
          {item.template && ' template'}
        </Badge>
        {item.withheld !== undefined && <Badge tone="fault">withheld</Badge>}
        {!item.listed && item.withheld === undefined && <Badge tone="warn">not listed</Badge>}
        {item.task !== undefined && (
          <Badge tone="info">
            task: <Text value={item.task} most={40} />
          </Badge>
        )}
        {HINTS.filter(([name]) => annotations[name] === true).map(([name, label, tone]) => (
          <Badge key={name} tone={tone}>
            {label}
          </Badge>
        ))}
        {item.limits.map(limit => (
          <Badge key={limit}>
            <Text value={limit} most={60} />
          </Badge>
        ))}
      </div>
      {item.title !== undefined && (
        <p>
          <strong>
            <Text value={item.title} />
          </strong>
        </p>
      )}
      {item.description !== undefined && (
        <p class="wrap">
          <Text value={item.description} lines />
        </p>
      )}
      {item.withheld !== undefined && (
        <p class="note fault">
          Calls fail: <Text value={item.withheld} />
        </p>
      )}
      {item.changes.length > 0 && (
        <div class="note warn">
          <ul>
            {item.changes.map(change => (
              <li key={`${change.at} ${change.text}`}>
                <Impact {...change} /> <Text value={change.text} />
                <Values {...change} />
              </li>
            ))}
          </ul>
        </div>
      )}
      <Facts
        list={[
          ['Route', <RouteLink route={item.route} path={item.path} />],
          ['Requires', <Needs {...item} />],
          [
            'Calls',
            `${count(figures?.calls ?? 0)}, ${count(figures?.errors ?? 0)} with errors, ${count(figures?.denials ?? 0)} denied`,
          ],
          ['Latency', `p50 ${time(figures?.p50) ?? '–'}, p99 ${time(figures?.p99) ?? '–'}`],
          ['Last call', figures && fullTime(figures.lastAt)],
        ]}
      />
      <div class="tools">
        <Link class="button" href={urlOf('/calls', { q: item.name })}>
          Show calls
        </Link>
        <Link class="button" href={urlOf('/access', { path: item.path })}>
          Show access
        </Link>
        {me.value?.try === true && item.kind === 'tools' && (
          <Link class="button" href={urlOf('/try', { path: item.path, tool: item.name })}>
            Try it
          </Link>
        )}
      </div>
      {Object.entries(SHOWN).map(
        ([name, label]) =>
          shown[name] !== undefined && (
            <section key={name} class="stack">
              <h3>{label}</h3>
              <CodeBlock text={json(shown[name])} what="the JSON" />
            </section>
          ),
      )}
      <details>
        <summary>Definition as clients receive it</summary>
        <CodeBlock text={json(shown)} what="the definition" />
      </details>
    </>
  )
}

export default function ToolsScreen() {
  const surface = useResource<Reply<Surface>>(PATHS.surface, { every: 10 })
  return (
    <Loaded from={surface}>
      {data => (
        <>
          {data.lock.problem !== undefined && (
            <p class="note fault">
              <Text value={data.lock.problem} />
            </p>
          )}
          <List
            noun="item"
            caption="Tools, resources and prompts"
            columns={COLUMNS}
            rows={rowsOf(data)}
            keyOf={({ name, kind, path }) => ({ name, kind, path })}
            textOf={({ name, title, description }) => [name, title, description].join(' ')}
            filters={[
              {
                name: 'route',
                label: 'Route',
                options: [...new Set(data.items.map(({ route }) => route))].map(route => [route, route]),
                of: ({ route }) => route,
              },
              { name: 'only', label: 'Kind', options: Object.entries(KINDS), of: ({ kind }) => kind },
            ]}
            details={{ title: ({ name }) => name, content: item => <Details item={item} /> }}
          >
            <LockBadge lock={data.lock} />
          </List>
          {data.withheld.length > 0 && (
            <section class="card">
              <h2>Withheld from clients</h2>
              <WithheldItems items={data.withheld} />
            </section>
          )}
          {data.lock.changes.length > 0 && (
            <section class="card">
              <h2>{data.lock.state === 'none' ? 'Definitions to accept' : 'Changes since the lock file'}</h2>
              <ul class="rows">
                {data.lock.changes.map(change => (
                  <li key={`${change.at} ${change.text}`}>
                    <Impact {...change} />
                    <div class="grow wrap">
                      <Code value={change.at} /> <Text value={change.text} />
                      <Values {...change} />
                    </div>
                  </li>
                ))}
              </ul>
            </section>
          )}
          <Commands list={data.commands} />
        </>
      )}
    </Loaded>
  )
}
