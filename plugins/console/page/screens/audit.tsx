// Screen 11: the last lines of the audit, and whether their chain of hashes is intact.
import { type AuditTail, PATHS, type Reply } from '../../api.ts'
import { useQuery } from '../data/query.ts'
import { useResource } from '../data/resource.ts'
import { count, fullTime } from '../data/text.ts'
import { Badge, type Tone } from '../parts/badge.tsx'
import { CodeBlock, Commands, Copy } from '../parts/copy.tsx'
import { Drawer } from '../parts/dialogs.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Code, Optional, Text } from '../parts/text.tsx'

type Line = AuditTail['lines'][number]

interface Row {
  readonly index: number
  readonly line: Line
}

const textOf = (line: Line, name: string): string | undefined => {
  const value = line[name]
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined
}

const GAPS: ReadonlySet<string> = new Set(['gap', 'healed'])

function toneOf(line: Line): Tone {
  if (line['unreadable'] === true || GAPS.has(textOf(line, 'event') ?? '')) return 'fault'
  return line['decision'] === 'refused' ? 'warn' : 'plain'
}

const timeOf = (line: Line): string => {
  const at = Date.parse(textOf(line, 'time') ?? '')
  return Number.isNaN(at) ? '–' : fullTime(at)
}

const COLUMNS: readonly Column<Row>[] = [
  { title: 'Line', cell: ({ line }) => textOf(line, 'seq') ?? '–', width: '5.5rem' },
  {
    title: 'Event',
    cell: ({ line }) => (
      <Badge tone={toneOf(line)}>
        <Text value={line['unreadable'] === true ? 'unreadable' : (textOf(line, 'event') ?? '')} most={40} />
      </Badge>
    ),
    width: '8rem',
  },
  {
    title: 'Item',
    cell: ({ line }) => <Optional value={[textOf(line, 'method'), textOf(line, 'name')].filter(Boolean).join(' ')} />,
  },
  {
    title: 'Decision',
    cell: ({ line }) => <Optional value={textOf(line, 'decision')} />,
    width: '6.5rem',
    isExtra: true,
  },
  {
    title: 'Reason',
    cell: ({ line }) => <Optional value={textOf(line, 'reason') ?? textOf(line, 'error')} />,
    isExtra: true,
  },
  { title: 'User', cell: ({ line }) => <Optional value={textOf(line, 'user')} />, isExtra: true },
  { title: 'Time', cell: ({ line }) => timeOf(line), width: '13.5rem', isExtra: true },
]

const Chain = ({ chain }: { readonly chain: AuditTail['chain'] }) => (
  <div class={chain.state === 'ok' ? 'note good' : 'note fault'} role={chain.state === 'ok' ? undefined : 'alert'}>
    <span class="wrap">
      {chain.state === 'ok' ? 'The lines shown form an unbroken chain' : 'The chain is broken'}
      {chain.from !== undefined && chain.to !== undefined && `: ${count(chain.from)} to ${count(chain.to)}`}.{' '}
      {chain.problem !== undefined && <Text value={chain.problem} />}{' '}
      {chain.head !== undefined && <Code value={chain.head} most={12} />}
    </span>
    {chain.head !== undefined && <Copy text={chain.head} what="" label="Copy head hash" />}
  </div>
)

export default function AuditScreen() {
  const [query, change] = useQuery()
  const audit = useResource<Reply<AuditTail>>(`${PATHS.audit}?lines=500`, { every: 5 })
  const words = (query.get('q') ?? '').toLowerCase()
  return (
    <Loaded from={audit}>
      {data => {
        const rows = data.lines.map((line, index) => ({ index, line })).toReversed()
        const shown =
          words === '' ? rows : rows.filter(({ line }) => JSON.stringify(line).toLowerCase().includes(words))
        const opened = rows.find(({ line }) => textOf(line, 'seq') === query.get('line'))
        return (
          <>
            <Chain chain={data.chain} />
            <div class="tools">
              <label class="inline">
                <span>Filter</span>
                <input
                  type="search"
                  value={query.get('q') ?? ''}
                  placeholder="tool, user, decision"
                  onInput={event => change({ q: event.currentTarget.value })}
                />
              </label>
              <span class="muted small">
                {count(shown.length)} of the last {count(rows.length)} lines of <Code value={data.file} />
              </span>
            </div>
            {shown.length === 0 ? (
              <Empty title={rows.length === 0 ? 'No lines yet' : 'No line matches the filter'} />
            ) : (
              <Table
                caption="Audit lines, newest first"
                columns={COLUMNS}
                rows={shown}
                keyOf={({ index, line }) => textOf(line, 'seq') ?? `unreadable ${index}`}
                onOpen={({ line }) => change({ line: textOf(line, 'seq') })}
              />
            )}
            <Commands list={data.commands} />
            {opened && (
              <Drawer title={`Line ${textOf(opened.line, 'seq')}`} onClose={() => change({ line: undefined })}>
                <CodeBlock text={JSON.stringify(opened.line, undefined, 2)} what="the line" />
              </Drawer>
            )}
          </>
        )
      }}
    </Loaded>
  )
}
