// The stream of live data: one for all screens, closed while the tab is hidden.
import { batch, effect, signal } from '@preact/signals'
import { type CallRow, type Calls, type ConsoleEvent, PATHS, type Reply, type Second } from '../../api.ts'
import { isVisible } from './clock.ts'
import { selectedNode, withNode } from './node.ts'
import { access, request, send } from './request.ts'
import { partsOf } from './stream.ts'

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

let stream: AbortController | undefined
let retry = 0

export const callKey = ({ node, seq }: CallRow): string => `${node} ${seq}`

function addCalls(newest: readonly CallRow[]): void {
  const known = new Set(calls.value.slice(0, MAX_CALLS).map(callKey))
  const added = newest.filter(call => !known.has(callKey(call)))
  if (added.length > 0) calls.value = [...added, ...calls.value].slice(0, MAX_CALLS)
}

function close(): void {
  clearTimeout(retry)
  stream?.abort()
  stream = undefined
}

/** Fills in what happened while the stream was closed. */
async function loadCalls(): Promise<void> {
  const found = await request<Reply<Calls>>(withNode(`${PATHS.calls}?limit=${MAX_CALLS}`)).catch(() => undefined)
  if (found?.available) addCalls(found.calls)
}

const EVENTS: { readonly [Name in ConsoleEvent['event']]: (data: EventOf<Name>) => void } = {
  calls({ calls: added, skipped }) {
    addCalls(added.toReversed())
    skippedCalls.value += skipped
  },
  tick(tick) {
    lastTick.value = tick
    seconds.value = [...seconds.value, tick.second].slice(-MAX_SECONDS)
  },
  reload() {
    reloads.value += 1
  },
  end({ reason }) {
    connection.value = 'ended'
    endReason.value = reason
    close()
  },
}

const isEvent = (name: string): name is keyof typeof EVENTS => Object.hasOwn(EVENTS, name)

/** Handles one event. The host sends each field in one line. */
function receive(text: string): void {
  const [, name = ''] = /^event: (\w+)$/m.exec(text) ?? []
  const [, data] = /^data: (.*)$/m.exec(text) ?? []
  if (data === undefined || !isEvent(name)) return
  batch(() => {
    lastMessageAt.value = Date.now()
    connection.value = 'live'
    EVENTS[name](JSON.parse(data))
  })
}

/** Uses `fetch`, because an EventSource cannot send the secret as a header. */
async function open(): Promise<void> {
  close()
  const own = new AbortController()
  stream = own
  try {
    const response = await send(withNode(PATHS.events), { signal: own.signal })
    connection.value = 'live'
    void loadCalls()
    for await (const event of partsOf(response, '\n\n')) receive(event)
  } catch {
    // Reported as lost below.
  }
  if (stream !== own) return
  connection.value = 'lost'
  if (access.value === 'granted') retry = window.setTimeout(open, RETRY)
}

/** Opens the stream whenever a session exists and the tab is visible. */
export function follow(): void {
  let last = selectedNode.peek()
  effect(() => {
    if (last !== selectedNode.value) {
      last = selectedNode.value
      calls.value = []
      seconds.value = []
      skippedCalls.value = 0
    }
    if (access.value === 'granted' && isVisible.value) void open()
    else close()
  })
}
