// Screen 3: tools, resources and prompts with their definitions, figures, and changes since the lock.
import { Link } from 'wouter-preact'
import {
  type LockChange,
  type LockState,
  PATHS,
  type Reply,
  type Surface,
  type SurfaceItem,
  type ToolFigures,
} from '../../api.ts'
import { urlOf, useQuery } from '../data/query.ts'
import { useResource } from '../data/resource.ts'
import { me } from '../data/session.ts'
import { count, fullTime, milliseconds, percent, plural } from '../data/text.ts'
import { Badge } from '../parts/badge.tsx'
import { CodeBlock, Commands } from '../parts/copy.tsx'
import { Drawer } from '../parts/dialogs.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Code, Text } from '../parts/text.tsx'

interface Row extends SurfaceItem {
  readonly figures: ToolFigures | undefined
  readonly changes: readonly LockChange[]
}

const KINDS = { tools: 'Tool', resources: 'Resource', prompts: 'Prompt' } as const

const keyOf = ({ path, kind, name }: SurfaceItem): string => `${path} ${kind} ${name}`

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

const COLUMNS: readonly Column<Row>[] = [
  {
    title: 'Name',
    cell: ({ name, changes }) => (
      <>
        <Code value={name} /> {changes.length > 0 && <Badge tone="warn">changed</Badge>}
      </>
    ),
    by: ({ name }) => name,
  },
  { title: 'Kind', cell: ({ kind }) => KINDS[kind], by: ({ kind }) => kind, width: '6.5rem', isExtra: true },
  { title: 'Route', cell: ({ path }) => <Code value={path} />, by: ({ path }) => path, width: '9rem', isExtra: true },
  { title: 'Requires', cell: item => <Needs {...item} />, isExtra: true },
  {
    title: 'Calls',
    cell: ({ figures }) => count(figures?.calls ?? 0),
    by: ({ figures }) => figures?.calls ?? 0,
    isNumber: true,
    width: '5.5rem',
  },
  {
    title: 'Errors',
    cell: ({ figures }) => (figures && figures.calls > 0 ? percent(figures.errors / figures.calls) : '–'),
    by: ({ figures }) => (figures && figures.calls > 0 ? figures.errors / figures.calls : 0),
    isNumber: true,
    width: '5.5rem',
  },
  {
    title: 'p50',
    cell: ({ figures }) => (figures?.p50 === undefined ? '–' : milliseconds(figures.p50)),
    by: ({ figures }) => figures?.p50 ?? 0,
    isNumber: true,
    isExtra: true,
    width: '6rem',
  },
  {
    title: 'p99',
    cell: ({ figures }) => (figures?.p99 === undefined ? '–' : milliseconds(figures.p99)),
    by: ({ figures }) => figures?.p99 ?? 0,
    isNumber: true,
    isExtra: true,
    width: '6rem',
  },
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

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const json = (value: unknown) => JSON.stringify(value, undefined, 2)

function ItemDrawer({ item, onClose }: { readonly item: Row; readonly onClose: () => void }) {
  const { shown, figures } = item
  const annotations = isObject(shown['annotations']) ? shown['annotations'] : {}
  return (
    <Drawer title={<Text value={item.name} />} onClose={onClose}>
      <div class="badges">
        <Badge>
          {KINDS[item.kind]}
          {item.template && ' template'}
        </Badge>
        {!item.listed && <Badge tone="warn">not listed</Badge>}
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
      {item.changes.length > 0 && (
        <div class="note warn">
          <ul>
            {item.changes.map(({ text, impact, at }) => (
              <li key={`${at} ${text}`}>
                <Badge tone="warn">
                  <Text value={impact} most={30} />
                </Badge>{' '}
                <Text value={text} />
              </li>
            ))}
          </ul>
        </div>
      )}
      <dl class="facts">
        <dt>Route</dt>
        <dd>
          <Link href={urlOf('/routes', { route: item.route })}>
            <Code value={item.path} />
          </Link>
        </dd>
        <dt>Requires</dt>
        <dd>
          <Needs {...item} />
        </dd>
        <dt>Calls</dt>
        <dd class="number">
          {count(figures?.calls ?? 0)}, {count(figures?.errors ?? 0)} with errors, {count(figures?.denials ?? 0)} denied
        </dd>
        <dt>Latency</dt>
        <dd class="number">
          p50 {figures?.p50 === undefined ? '–' : milliseconds(figures.p50)}, p99{' '}
          {figures?.p99 === undefined ? '–' : milliseconds(figures.p99)}
        </dd>
        <dt>Last call</dt>
        <dd class="number">{figures ? fullTime(figures.lastAt) : '–'}</dd>
      </dl>
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
      {(['inputSchema', 'outputSchema', 'arguments', 'annotations'] as const).map(
        name =>
          shown[name] !== undefined && (
            <section key={name} class="stack">
              <h3>
                {
                  {
                    inputSchema: 'Input schema',
                    outputSchema: 'Output schema',
                    arguments: 'Arguments',
                    annotations: 'Annotations',
                  }[name]
                }
              </h3>
              <CodeBlock text={json(shown[name])} what="the JSON" />
            </section>
          ),
      )}
      <details>
        <summary>Definition as clients receive it</summary>
        <CodeBlock text={json(shown)} what="the definition" />
      </details>
    </Drawer>
  )
}

export default function ToolsScreen() {
  const surface = useResource<Reply<Surface>>(PATHS.surface, { every: 10 })
  const [query, change] = useQuery()
  const words = (query.get('q') ?? '').toLowerCase()
  const [route, only] = [query.get('route'), query.get('only') ?? '']
  return (
    <Loaded from={surface}>
      {data => {
        const rows = rowsOf(data)
        const routes = [...new Set(rows.map(item => item.route))]
        const shown = rows.filter(
          item =>
            (route === null || item.route === route) &&
            (only === '' || item.kind === only) &&
            `${item.name} ${item.title ?? ''} ${item.description ?? ''}`.toLowerCase().includes(words),
        )
        const opened = rows.find(
          ({ path, kind, name }) =>
            path === query.get('path') && kind === query.get('kind') && name === query.get('name'),
        )
        return (
          <>
            <div class="tools">
              <label class="inline">
                <span>Filter</span>
                <input
                  type="search"
                  value={query.get('q') ?? ''}
                  onInput={event => change({ q: event.currentTarget.value })}
                />
              </label>
              <label class="inline">
                <span>Route</span>
                <select value={route ?? ''} onChange={event => change({ route: event.currentTarget.value })}>
                  <option value="">All</option>
                  {routes.map(one => (
                    <option key={one} value={one}>
                      {one}
                    </option>
                  ))}
                </select>
              </label>
              <label class="inline">
                <span>Kind</span>
                <select value={only} onChange={event => change({ only: event.currentTarget.value })}>
                  <option value="">All</option>
                  {Object.entries(KINDS).map(([kind, label]) => (
                    <option key={kind} value={kind}>
                      {label}s
                    </option>
                  ))}
                </select>
              </label>
              <LockBadge lock={data.lock} />
            </div>
            {data.lock.problem !== undefined && (
              <p class="note fault">
                <Text value={data.lock.problem} />
              </p>
            )}
            {shown.length === 0 ? (
              <Empty title={rows.length === 0 ? 'No tools' : 'Nothing matches the filter'} />
            ) : (
              <Table
                caption="Tools, resources and prompts"
                columns={COLUMNS}
                rows={shown}
                keyOf={keyOf}
                onOpen={({ path, kind, name }) => change({ path, kind, name })}
              />
            )}
            {data.lock.changes.length > 0 && (
              <section class="card">
                <h2>Changes since the lock file</h2>
                <ul class="rows">
                  {data.lock.changes.map(({ at, impact, text }) => (
                    <li key={`${at} ${text}`}>
                      <Badge tone="warn">
                        <Text value={impact} most={30} />
                      </Badge>
                      <span class="grow wrap">
                        <Code value={at} /> <Text value={text} />
                      </span>
                    </li>
                  ))}
                </ul>
              </section>
            )}
            <Commands list={data.commands} />
            {opened && (
              <ItemDrawer item={opened} onClose={() => change({ path: undefined, kind: undefined, name: undefined })} />
            )}
          </>
        )
      }}
    </Loaded>
  )
}
