// Processes that use the file cache next to the test. They end with the test at the latest.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { bundledFile } from '../../../support/compiled.ts'
import type { Job, Told } from './cache-process.ts'

const running = new Set<ChildProcess>()

export interface Forked {
  readonly pid: number
  /** Everything it told, in order. */
  readonly told: readonly Told[]
  /** The next thing it tells. Rejects when it ends first. */
  next(): Promise<Told>
  go(): void
  /** SIGKILL; resolves when it is gone and everything that it told has arrived. */
  kill(): Promise<void>
}

export function forkJob(job: Job): Forked {
  const child = fork(bundledFile('test/client/node/support/cache-process.ts'), [JSON.stringify(job)], {
    execArgv: [],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  running.add(child)
  const told: Told[] = []
  const unread: Told[] = []
  let wake: (() => void) | undefined
  child.on('message', message => {
    told.push(message as Told)
    unread.push(message as Told)
    wake?.()
  })
  let connected = true
  const gone = Promise.all([
    once(child, 'exit'),
    once(child, 'disconnect').then(() => {
      connected = false
      wake?.()
    }),
  ]).then(() => void running.delete(child))
  return {
    pid: child.pid ?? 0,
    told,
    async next() {
      while (unread.length === 0) {
        if (!connected) throw new Error(`process ${child.pid} ended: ${JSON.stringify(job)}`)
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
      return unread.shift() as Told
    },
    go: () => void child.send('go'),
    async kill() {
      child.kill('SIGKILL')
      await gone
    },
  }
}

/** Ends what a test left. */
export function endForks(): void {
  for (const child of running) child.kill('SIGKILL')
}
