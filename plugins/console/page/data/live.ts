// The stream of live data: one EventSource for all screens, closed while the tab is hidden.
import { batch, effect, signal } from '@preact/signals'
import { type CallRow, type Calls, type ConsoleEvent, PATHS, type Reply, type Second } from '../../api.ts'
import { isVisible } from './clock.ts'
import { access, request } from './request.ts'

/** Calls that the page keeps, as many as the ring buffer of the host. */
const MAX_CALLS = 2_000
const MAX_SECONDS = 300
/** Milliseconds before a closed stream is opened again. */
const RETRY = 3_000

type EventOf<Name extends ConsoleEvent['event']> = Omit<Extract<ConsoleEvent, { event: Name }>, 'event'>

export const connection = signal<'connecting' | 'live' | 'lost' | 'ended'>('connecting')
export const endReason = signal('')
export const lastTick = signal<EventOf<'tick'> | undefined>(undefined)
/** Figures per second since the page was opened, oldest first. */
export const seconds = signal<readonly Second[]>([])
/** When the last message arrived, by the clock of this machine. */
export const lastMessageAt = signal<number | undefined>(undefined)
/** Newest first. */
export const calls = signal<readonly CallRow[]>([])
/** Calls that the stream left out, since the page was opened. */
export const skippedCalls = signal(0)
/** Increases with each reload of the config. */
export const reloads = signal(0)

let source: EventSource | undefined
let retry = 0

export const callKey = ({ node, seq }: CallRow): string => `${node} ${seq}`

function addCalls(newest: readonly CallRow[]): void {
  const known = new Set(calls.value.slice(0, MAX_CALLS).map(callKey))
  const added = newest.filter(call => !known.has(callKey(call)))
  if (added.length > 0) calls.value = [...added, ...calls.value].slice(0, MAX_CALLS)
}

function on<Name extends ConsoleEvent['event']>(name: Name, apply: (data: EventOf<Name>) => void): void {
  source?.addEventListener(name, ({ data }: MessageEvent<string>) =>
    batch(() => {
      lastMessageAt.value = Date.now()
      connection.value = 'live'
      apply(JSON.parse(data))
    }),
  )
}

function close(): void {
  clearTimeout(retry)
  source?.close()
  source = undefined
}

async function reopen(): Promise<void> {
  close()
  try {
    // An EventSource hides the status of a failure: this request shows whether the session has ended.
    await request(PATHS.me)
    if (isVisible.value) open()
  } catch {
    if (isVisible.value && access.value === 'granted') retry = window.setTimeout(reopen, RETRY)
  }
}

/** Fills in what happened while the stream was closed. */
async function loadCalls(): Promise<void> {
  const found = await request<Reply<Calls>>(`${PATHS.calls}?limit=${MAX_CALLS}`).catch(() => undefined)
  if (found?.available) addCalls(found.calls)
}

function open(): void {
  close()
  source = new EventSource(PATHS.events)
  source.addEventListener('open', () => {
    connection.value = 'live'
    void loadCalls()
  })
  source.addEventListener('error', () => {
    if (connection.value === 'ended') return
    connection.value = 'lost'
    close()
    retry = window.setTimeout(reopen, RETRY)
  })
  on('calls', ({ calls: added, skipped }) => {
    addCalls(added.toReversed())
    skippedCalls.value += skipped
  })
  on('tick', tick => {
    lastTick.value = tick
    seconds.value = [...seconds.value, tick.second].slice(-MAX_SECONDS)
  })
  on('reload', () => {
    reloads.value += 1
  })
  on('end', ({ reason }) => {
    connection.value = 'ended'
    endReason.value = reason
    close()
  })
}

/** Opens the stream whenever a session exists and the tab is visible. */
export function follow(): void {
  effect(() => {
    if (access.value === 'granted' && isVisible.value) open()
    else close()
  })
}
