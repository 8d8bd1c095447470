// Screen 6: calls as they happen, with a filter, pause, and the stages of one call.
import { useSignal } from '@preact/signals'
import type { CallRow } from '../../api.ts'
import { callKey, calls, skippedCalls } from '../data/live.ts'
import { useQuery } from '../data/query.ts'
import { clockTime, count, milliseconds, plural } from '../data/text.ts'
import { CallDrawer, clientText, itemText, OUTCOME_NAMES, OutcomeBadge } from '../parts/calls.tsx'
import { Empty } from '../parts/states.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Code, Optional } from '../parts/text.tsx'

const COLUMNS: readonly Column<CallRow>[] = [
  { title: 'Time', cell: ({ at }) => clockTime(at), width: '6.5rem' },
  { title: 'Call', cell: call => <Code value={itemText(call)} /> },
  { title: 'Outcome', cell: ({ outcome }) => <OutcomeBadge outcome={outcome} />, width: '8.5rem' },
  { title: 'Duration', cell: ({ ms }) => milliseconds(ms), width: '6rem', isNumber: true, isExtra: true },
  { title: 'Route', cell: ({ route }) => <Optional value={route} />, width: '8rem', isExtra: true },
  { title: 'Client', cell: call => <Optional value={clientText(call)} />, width: '11rem', isExtra: true },
  { title: 'User', cell: ({ user }) => <Optional value={user} none="anonymous" />, width: '9rem', isExtra: true },
]

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
    call.error?.kind,
    call.error?.refusedBy,
    call.revision,
  ]
    .join('\n')
    .toLowerCase()

export default function CallsScreen() {
  const [query, change] = useQuery()
  /** The calls at the time of the pause. */
  const frozen = useSignal<readonly CallRow[] | undefined>(undefined)
  const isScrolled = useSignal(false)
  const words = (query.get('q') ?? '').toLowerCase()
  const outcome = query.get('outcome') ?? ''
  const list = frozen.value ?? calls.value
  const shown = list.filter(
    call => (outcome === '' || call.outcome === outcome) && (words === '' || textOf(call).includes(words)),
  )
  const [node, seq] = [query.get('node'), query.get('seq')]
  const opened =
    seq === null ? undefined : list.find(call => String(call.seq) === seq && (node ?? call.node) === call.node)
  const pause = (isPaused: boolean) => {
    frozen.value = isPaused ? calls.peek() : undefined
  }
  const waiting = frozen.value ? calls.value.indexOf(frozen.value[0] ?? ({} as CallRow)) : 0

  return (
    <div class="stack">
      <div class="tools">
        <label class="inline">
          <span>Filter</span>
          <input
            type="search"
            value={query.get('q') ?? ''}
            placeholder="tool, client, user, request ID"
            onInput={event => change({ q: event.currentTarget.value })}
          />
        </label>
        <label class="inline">
          <span>Outcome</span>
          <select value={outcome} onChange={event => change({ outcome: event.currentTarget.value })}>
            <option value="">All</option>
            {OUTCOME_NAMES.map(([name, label]) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <button
          type="button"
          aria-pressed={frozen.value !== undefined}
          onClick={() => pause(frozen.value === undefined)}
        >
          {frozen.value === undefined ? 'Pause' : 'Resume'}
        </button>
        <span class="muted small number">
          {count(shown.length)} of {plural(list.length, 'call')}
          {skippedCalls.value > 0 && `, ${count(skippedCalls.value)} more not sent to this page`}
          {frozen.value && `, ${waiting < 0 ? 'more than 2,000' : count(waiting)} new`}
        </span>
      </div>
      {seq !== null && !opened && <p class="note">Call {seq} is no longer in the buffer of this page.</p>}
      {shown.length === 0 ? (
        <Empty title={list.length === 0 ? 'No calls yet' : 'No call matches the filter'}>
          {list.length === 0 ? (
            <p>Calls appear here within a second.</p>
          ) : (
            <button type="button" onClick={() => change({ q: '', outcome: '' })}>
              Clear the filter
            </button>
          )}
        </Empty>
      ) : (
        <Table
          caption="Calls, newest first"
          columns={COLUMNS}
          rows={shown}
          keyOf={callKey}
          onOpen={call => {
            pause(true)
            change({ seq: String(call.seq), node: call.node })
          }}
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
        />
      )}
      {opened && (
        <CallDrawer
          call={opened}
          onClose={() => {
            change({ seq: undefined, node: undefined })
            if (!isScrolled.value) pause(false)
          }}
        />
      )}
    </div>
  )
}
