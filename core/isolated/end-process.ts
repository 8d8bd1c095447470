// The end of the process while a thread does not end: Node waits in `process.exit` for every thread, and what computes in
// native code ends no sooner than it is through.
import { existsSync } from 'node:fs'

/** Milliseconds that the exit waits for threads that were told to end. */
const EXIT_WITHIN = 2_000
const LOOK_EVERY = 10

export interface Lingering {
  /** The number that Linux has for the thread. */
  readonly task: string | undefined
  /** Neither runs a call nor ends: it hears Node. */
  readonly isIdle: boolean
  /** Milliseconds since it was told to end. */
  readonly endingFor: number
  end(): void
}

const alive = new Set<Lingering>()

const sleep = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

/** Where the system does not tell, whoever has had its time. */
const isThere = ({ task, endingFor }: Lingering): boolean =>
  task === undefined ? endingFor >= EXIT_WITHIN : existsSync(`/proc/self/task/${task}`)

/** By a signal, for Node has no other end that waits for nobody. SIGTERM is no failure to whoever started the process. */
function endAtOnce(code: number) {
  const signal = code === 0 ? 'SIGTERM' : 'SIGKILL'
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
  // The first process of a container is ended by none of its own signals.
  process.abort()
}

function atExit(code: number) {
  const late = [...alive].filter(thread => !thread.isIdle)
  for (const thread of late) thread.end()
  for (let left = late.filter(isThere); left.length > 0; left = left.filter(isThere)) {
    if (left.some(({ endingFor }) => endingFor >= EXIT_WITHIN)) return endAtOnce(code)
    sleep(LOOK_EVERY)
  }
}

/** From now on the process ends without it, where need be. Returns what to call when the thread is gone. */
export function endProcessWithout(thread: Lingering): () => void {
  if (alive.size === 0) process.on('exit', atExit)
  alive.add(thread)
  return () => {
    alive.delete(thread)
    if (alive.size === 0) process.off('exit', atExit)
  }
}
