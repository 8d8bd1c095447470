// Screen 11: the last lines of the audit, and whether their chain of hashes is intact.
import { type AuditTail, PATHS, type Reply } from '../../api.ts'
import { useResource } from '../data/resource.ts'
import { count, fullTime, json } from '../data/text.ts'
import { Badge, type Tone } from '../parts/badge.tsx'
import { CodeBlock, Commands, Copy } from '../parts/copy.tsx'
import { List } from '../parts/list.tsx'
import { Loaded } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { Code, Text } from '../parts/text.tsx'

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

const timeOf = (line: Line): string | undefined => {
  const at = Date.parse(textOf(line, 'time') ?? '')
  return Number.isNaN(at) ? undefined : fullTime(at)
}

const eventOf = (line: Line): string => (line['unreadable'] === true ? 'unreadable' : (textOf(line, 'event') ?? ''))

/** Of calls, or of console actions. */
const ITEM = ['method', 'name', 'action', 'target', 'handle']

const COLUMNS: readonly Column<Row>[] = [
  { title: 'Line', value: ({ line }) => textOf(line, 'seq'), width: '5.5rem' },
  {
    title: 'Event',
    value: ({ line }) => eventOf(line),
    cell: ({ line }) => (
      <Badge tone={toneOf(line)}>
        <Text value={eventOf(line)} most={40} />
      </Badge>
    ),
    width: '8rem',
  },
  {
    title: 'Item',
    value: ({ line }) =>
      ITEM.map(name => textOf(line, name))
        .filter(Boolean)
        .join(' '),
  },
  {
    title: 'Decision',
    value: ({ line }) => textOf(line, 'decision') ?? textOf(line, 'outcome'),
    width: '6.5rem',
    isExtra: true,
  },
  { title: 'Reason', value: ({ line }) => textOf(line, 'reason') ?? textOf(line, 'error'), isExtra: true },
  { title: 'User', value: ({ line }) => textOf(line, 'user') ?? textOf(line, 'owner'), isExtra: true },
  { title: 'Time', value: ({ line }) => timeOf(line), width: '13.5rem', isExtra: true },
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
  const audit = useResource<Reply<AuditTail>>(`${PATHS.audit}?lines=500`, { every: 5 })
  return (
    <Loaded from={audit}>
      {data => (
        <>
          <Chain chain={data.chain} />
          <List
            noun="line"
            caption="Audit lines, newest first"
            columns={COLUMNS}
            rows={data.lines.map((line, index) => ({ index, line })).toReversed()}
            keyOf={({ index, line }) => ({ line: textOf(line, 'seq') ?? `unreadable ${index}` })}
            textOf={({ line }) => JSON.stringify(line)}
            placeholder="tool, user, decision"
            summary={shown => `${count(shown)} of the last ${count(data.lines.length)} lines of ${data.file}`}
            details={{
              title: ({ line }) => `Line ${textOf(line, 'seq') ?? ''}`,
              content: ({ line }) => <CodeBlock text={json(line)} what="the line" />,
            }}
          />
          <Commands list={data.commands} />
        </>
      )}
    </Loaded>
  )
}
