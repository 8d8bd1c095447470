// Screen 7: refused requests, grouped by cause, with the next step.
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { type DenialGroup, type Denials, type Explanation, PATHS, type Reply } from '../../api.ts'
import { urlOf } from '../data/query.ts'
import { useResource } from '../data/resource.ts'
import { count, fullTime } from '../data/text.ts'
import { Badge } from '../parts/badge.tsx'
import { explainCommand, Reason } from '../parts/calls.tsx'
import { agoColumn, withNodes } from '../parts/columns.tsx'
import { Commands } from '../parts/copy.tsx'
import { Explained } from '../parts/explained.tsx'
import { List } from '../parts/list.tsx'
import { Loaded, Scope } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { Code, Facts, Text } from '../parts/text.tsx'

const keyOf = ({ kind, refusedBy, route, method, item, client }: DenialGroup): string =>
  [kind, refusedBy, route, method, item?.kind, item?.name, client].join(' ')

const COLUMNS: readonly Column<DenialGroup>[] = [
  {
    title: 'Cause',
    value: ({ kind }) => kind,
    cell: ({ kind, status }) => (
      <>
        <Code value={kind} /> <Badge>{status}</Badge>
      </>
    ),
  },
  { title: 'Refused by', value: ({ refusedBy }) => refusedBy, isExtra: true },
  { title: 'Route', value: ({ route }) => route, isExtra: true },
  { title: 'Item', value: ({ item, method }) => item?.name ?? method, isExtra: true },
  { title: 'Client', value: ({ client }) => client, isExtra: true },
  { title: 'Count', value: group => group.count, cell: group => count(group.count), isNumber: true, width: '6rem' },
  agoColumn('Last', ({ lastAt }) => lastAt, { isExtra: false }),
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

function Details({ group }: { readonly group: DenialGroup }) {
  const [isExplained, setExplained] = useState(false)
  const { route, samplePath, item } = group
  return (
    <>
      <div class="note fault">
        <p class="wrap">
          <Text value={group.message} lines />
          {group.reason !== undefined && <Reason reason={group.reason} />}
        </p>
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
      <Facts
        list={[
          ['Count', count(group.count)],
          ['First', fullTime(group.firstAt)],
          ['Last', fullTime(group.lastAt)],
          ['Status', group.status],
          ['Route', route],
          ['Method', group.method],
          ['Item', item?.name],
          ['Client', group.client ?? 'not stated'],
        ]}
      />
      <div class="tools">
        <Link class="button" href={urlOf('/calls', { outcome: 'refused', q: item?.name ?? group.kind })}>
          Show calls
        </Link>
        {samplePath !== undefined && (
          <>
            <Link class="button" href={urlOf('/access', { path: samplePath })}>
              Explain for a token
            </Link>
            {!isExplained && (
              <button type="button" onClick={() => setExplained(true)}>
                Explain for an anonymous caller
              </button>
            )}
          </>
        )}
      </div>
      {isExplained && <ExplainAnonymous group={group} />}
      {!isExplained && samplePath !== undefined && (
        <Commands
          list={[{ label: 'The anonymous caller in the terminal', command: explainCommand(samplePath, item) }]}
        />
      )}
    </>
  )
}

export default function DenialsScreen() {
  const denials = useResource<Reply<Denials>>(PATHS.denials, { every: 5 })
  return (
    <Loaded from={denials}>
      {data => (
        <List
          noun="denial"
          caption="Denials"
          columns={withNodes(COLUMNS, data, ({ nodes }) => nodes?.join(', '))}
          rows={data.groups}
          keyOf={group => ({ group: keyOf(group) })}
          textOf={group => `${keyOf(group)} ${group.reason ?? ''}`}
          placeholder="cause, plugin, route, client"
          summary={() => (data.other > 0 ? `${count(data.other)} more without a group` : '')}
          hint={<p>Refused requests appear here, grouped by cause.</p>}
          details={{
            title: ({ kind, refusedBy }) => `${kind} by ${refusedBy}`,
            content: group => <Details group={group} />,
          }}
        >
          <Scope {...data} />
        </List>
      )}
    </Loaded>
  )
}
