// Screen 7: refused requests, grouped by cause, with the next step.
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { type DenialGroup, type Denials, type Explanation, PATHS, type Reply } from '../../api.ts'
import { clock } from '../data/clock.ts'
import { urlOf, useQuery } from '../data/query.ts'
import { useResource } from '../data/resource.ts'
import { count, duration, fullTime } from '../data/text.ts'
import { Badge } from '../parts/badge.tsx'
import { explainCommand } from '../parts/calls.tsx'
import { Commands } from '../parts/copy.tsx'
import { Drawer } from '../parts/dialogs.tsx'
import { Explained } from '../parts/explained.tsx'
import { Empty, Loaded, Scope } from '../parts/states.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Code, Optional, Text } from '../parts/text.tsx'

const keyOf = ({ kind, refusedBy, route, method, item, client }: DenialGroup): string =>
  [kind, refusedBy, route, method, item?.kind, item?.name, client].join(' ')

const ago = (at: number) => `${duration(clock.value - at)} ago`

const COLUMNS: readonly Column<DenialGroup>[] = [
  {
    title: 'Cause',
    cell: ({ kind, status }) => (
      <>
        <Code value={kind} /> <Badge>{status}</Badge>
      </>
    ),
    by: ({ kind }) => kind,
  },
  {
    title: 'Refused by',
    cell: ({ refusedBy }) => <Text value={refusedBy} />,
    by: ({ refusedBy }) => refusedBy,
    isExtra: true,
  },
  { title: 'Route', cell: ({ route }) => <Optional value={route} />, by: ({ route = '' }) => route, isExtra: true },
  { title: 'Item', cell: ({ item, method }) => <Optional value={item?.name ?? method} />, isExtra: true },
  { title: 'Client', cell: ({ client }) => <Optional value={client} />, isExtra: true },
  {
    title: 'Count',
    cell: ({ count: times }) => count(times),
    by: ({ count: times }) => times,
    isNumber: true,
    width: '6rem',
  },
  { title: 'Last', cell: ({ lastAt }) => ago(lastAt), by: ({ lastAt }) => lastAt, isNumber: true, width: '8.5rem' },
]

function ExplainAnonymous({ group }: { readonly group: DenialGroup }) {
  const { samplePath, item } = group
  const explanation = useResource<Reply<Explanation>>(samplePath === undefined ? undefined : PATHS.explain, {
    body: JSON.stringify({ path: samplePath, caller: {}, ...(item ?? {}) }),
  })
  return (
    <section class="stack">
      <h3>Decision for an anonymous caller</h3>
      <Explained from={explanation} />
    </section>
  )
}

function GroupDrawer({ group, onClose }: { readonly group: DenialGroup; readonly onClose: () => void }) {
  const [isExplained, setExplained] = useState(false)
  const { route, samplePath, item } = group
  return (
    <Drawer title={<Text value={`${group.kind} by ${group.refusedBy}`} />} onClose={onClose}>
      <div class="note fault">
        <Text value={group.message} lines />
      </div>
      {group.fix !== undefined && (
        <div class="note good">
          <div>
            <strong>Next step</strong>
            <p class="wrap">
              <Text value={group.fix} lines />
            </p>
          </div>
        </div>
      )}
      <dl class="facts">
        <dt>Count</dt>
        <dd class="number">{count(group.count)}</dd>
        <dt>First</dt>
        <dd class="number">{fullTime(group.firstAt)}</dd>
        <dt>Last</dt>
        <dd class="number">{fullTime(group.lastAt)}</dd>
        <dt>Status</dt>
        <dd>{group.status}</dd>
        <dt>Route</dt>
        <dd>
          <Optional value={route} />
        </dd>
        <dt>Method</dt>
        <dd>
          <Optional value={group.method} />
        </dd>
        <dt>Item</dt>
        <dd>
          <Optional value={item?.name} />
        </dd>
        <dt>Client</dt>
        <dd>
          <Optional value={group.client} none="not stated" />
        </dd>
      </dl>
      <div class="tools">
        <Link class="button" href={urlOf('/calls', { outcome: 'refused', q: item?.name ?? group.kind })}>
          Show calls
        </Link>
        {samplePath !== undefined && (
          <>
            <Link class="button" href={urlOf('/access', { path: samplePath })}>
              Show access
            </Link>
            {!isExplained && (
              <button type="button" onClick={() => setExplained(true)}>
                Explain this
              </button>
            )}
          </>
        )}
      </div>
      {isExplained && <ExplainAnonymous group={group} />}
      {!isExplained && samplePath !== undefined && (
        <Commands list={[{ label: 'Same in the terminal', command: explainCommand(samplePath, item) }]} />
      )}
    </Drawer>
  )
}

export default function DenialsScreen() {
  const denials = useResource<Reply<Denials>>(PATHS.denials, { every: 5 })
  const [query, change] = useQuery()
  return (
    <Loaded from={denials}>
      {data => {
        const opened = data.groups.find(group => keyOf(group) === query.get('group'))
        return (
          <>
            <div class="tools">
              <Scope {...data} />
              {data.other > 0 && <span class="muted small">{count(data.other)} more without a group</span>}
            </div>
            {data.groups.length === 0 ? (
              <Empty title="No denials">
                <p>Refused requests appear here, grouped by cause.</p>
              </Empty>
            ) : (
              <Table
                caption="Denials"
                columns={COLUMNS}
                rows={data.groups}
                keyOf={keyOf}
                onOpen={group => change({ group: keyOf(group) })}
              />
            )}
            {opened && <GroupDrawer group={opened} onClose={() => change({ group: undefined })} />}
          </>
        )
      }}
    </Loaded>
  )
}
