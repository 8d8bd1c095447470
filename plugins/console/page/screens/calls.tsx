// Screen 6: calls as they happen, with a filter, pause, and the stages of one call.
import { useSignal } from '@preact/signals'
import type { CallRow } from '../../api.ts'
import { calls, lastTick, skippedCalls } from '../data/live.ts'
import { useQuery } from '../data/query.ts'
import { clockTime, count, milliseconds, plural, visibleText } from '../data/text.ts'
import { CallDetails, clientText, itemText, OUTCOME_NAMES, OutcomeBadge } from '../parts/calls.tsx'
import { List } from '../parts/list.tsx'
import type { Column } from '../parts/table.tsx'
import { Code, Text } from '../parts/text.tsx'

/** Not sortable: new calls arrive at the top. */
const COLUMNS: readonly Column<CallRow>[] = [
  { title: 'Time', cell: ({ at }) => clockTime(at), width: '6.5rem' },
  {
    title: 'Call',
    cell: call => (
      <>
        <Code value={call.name ?? itemText(call)} />{' '}
        {call.name !== undefined && (
          <span class="muted small">
            <Text value={call.method ?? ''} most={40} />
          </span>
        )}
      </>
    ),
  },
  { title: 'Outcome', cell: ({ outcome }) => <OutcomeBadge outcome={outcome} />, width: '8.5rem' },
  { title: 'Duration', cell: ({ ms }) => milliseconds(ms), width: '6rem', isNumber: true, isExtra: true },
  { title: 'Route', cell: ({ route }) => route, width: '7rem', isExtra: true },
  { title: 'Client', cell: clientText, width: '11rem', isExtra: true },
  { title: 'User', cell: ({ user = 'anonymous' }) => user, width: '8rem', isExtra: true },
]

const NODE: Column<CallRow> = { title: 'Node', cell: ({ node }) => node, width: '6rem', isExtra: true }

const textOf = (call: CallRow): string =>
  [
    itemText(call),
    call.route,
    clientText(call),
    call.user,
    call.oauthClient,
    call.requestId,
    call.traceId,
    call.node,
    call.upstream?.name,
    call.error?.kind,
    call.error?.refusedBy,
    call.revision,
  ].join('\n')

export default function CallsScreen() {
  const [query] = useQuery()
  /** The calls at the time of the pause. */
  const frozen = useSignal<readonly CallRow[] | undefined>(undefined)
  const isScrolled = useSignal(false)
  const list = frozen.value ?? calls.value
  const seq = query.get('seq')
  const pause = (isPaused: boolean) => {
    frozen.value = isPaused ? calls.peek() : undefined
  }
  const waiting = frozen.value?.[0] ? calls.value.indexOf(frozen.value[0]) : 0

  return (
    <div class="stack">
      {seq !== null && !list.some(call => String(call.seq) === seq) && (
        <p class="note">Call {visibleText(seq, 20)} is no longer in the buffer of this page.</p>
      )}
      <List
        noun="call"
        caption="Calls, newest first"
        columns={lastTick.value?.nodeStates ? [...COLUMNS, NODE] : COLUMNS}
        rows={list}
        keyOf={call => ({ seq: String(call.seq), from: call.node })}
        textOf={textOf}
        placeholder="tool, client, user, request ID"
        filters={[{ name: 'outcome', label: 'Outcome', options: OUTCOME_NAMES, of: ({ outcome }) => outcome }]}
        summary={shown =>
          `${count(shown)} of ${plural(list.length, 'call')}` +
          (skippedCalls.value > 0 ? `, ${count(skippedCalls.value)} more not sent to this page` : '') +
          (frozen.value ? `, ${waiting < 0 ? 'more than 2,000' : count(waiting)} new` : '')
        }
        hint={<p>Calls appear here within a second.</p>}
        details={{ title: itemText, content: call => <CallDetails call={call} /> }}
        onOpen={() => pause(true)}
        onClose={() => !isScrolled.value && pause(false)}
        onScroll={isAtTop => {
          // Rows that are read do not move.
          if (!isAtTop && !frozen.value) {
            isScrolled.value = true
            pause(true)
          } else if (isAtTop && isScrolled.value) {
            isScrolled.value = false
            pause(false)
          }
        }}
      >
        <button
          type="button"
          aria-pressed={frozen.value !== undefined}
          onClick={() => pause(frozen.value === undefined)}
        >
          {frozen.value === undefined ? 'Pause' : 'Resume'}
        </button>
      </List>
    </div>
  )
}
