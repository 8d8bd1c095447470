// Calls to a host that dies (crash-host.ts): what the client received and what the store contains.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { EventStore } from '../../core/sessions/event-store.ts'
import { digestOf } from '../../core/sessions/session-id.ts'
import { bundledFile } from './compiled.ts'
import type { CrashSettings } from './crash-host.ts'
import type { StreamingSession } from './streaming-session.ts'

const children = new Set<ChildProcess>()

export interface CrashHost {
  readonly url: string
  kill(): void
  /** The signal that ended the process. */
  readonly died: Promise<string | null>
}

export async function startCrashHost(settings: CrashSettings): Promise<CrashHost> {
  const file = bundledFile('test/support/crash-host.ts')
  const child = fork(file, [JSON.stringify(settings)], { execArgv: [], stdio: 'inherit' })
  children.add(child)
  const died = once(child, 'exit').then(([, signal]) => signal as string | null)
  const [{ url }] = (await once(child, 'message')) as [{ url: string }]
  return { url, kill: () => void child.kill('SIGKILL'), died }
}

/** Ends every process that this file started: call it in `after`. */
export function stopCrashHosts() {
  for (const child of children) child.kill('SIGKILL')
  children.clear()
}

/** The number of an event in its stream, and the progress in its message. The response has the next number. */
export type Numbered = readonly [seq: number, progress: number]

export interface WatchedCall {
  readonly session: string
  readonly stream: string
  readonly seen: readonly Numbered[]
}

function progressOf(message: unknown, count: number): number {
  const { params, result } = message as { params?: { progress?: number }; result?: unknown }
  return params?.progress ?? (result === undefined ? Number.NaN : count + 1)
}

/**
 * Calls `talk` in a session, and reads until the connection ends, be it broken; `saw` is called at each event. Rejects where
 * no answer began.
 */
export async function watchCall(session: StreamingSession, count: number, saw = () => {}): Promise<WatchedCall> {
  const answer = await session.call('talk', { count })
  const seen: Numbered[] = []
  let stream = ''
  for (let event = await answer.next(); event; event = await answer.next()) {
    const [name = '', seq] = event.id?.split('.') ?? []
    stream ||= name
    if (event.message === undefined) continue
    seen.push([Number(seq), progressOf(event.message, count)])
    saw()
  }
  return { session: session.id, stream, seen }
}

/** Stored events of a stream after a number; undefined if the store reports a gap. */
export async function storedAfter(store: EventStore, call: WatchedCall, seq: number, count: number) {
  const events = await store.after(digestOf(call.session), call.stream, seq)
  return events?.map(({ seq, message }): Numbered => [seq, progressOf(JSON.parse(message), count)])
}

/** The events that a call of `talk` sends between two numbers. */
export const numbered = (from: number, to: number): Numbered[] =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => [from + index, from + index])
