// Files of store-sqlite for tests: each in a folder of its own, opened as often as a test wants, each time with a thread.

import { mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../../../core/http/clock.ts'
import type { EventStore } from '../../../../core/sessions/event-store.ts'
import type { Store } from '../../../../core/store.ts'
import { createTestLog, type LoggedLine } from '../../../../core/testing/test-log.ts'
import {
  createEventStore,
  createSessionStore,
  type SessionStore,
  type StreamLimits,
} from '../../../../core/transport.ts'
import { createGrantStore, type GrantStore } from '../../../../plugins/families/grant-store/index.ts'
import { createTaskStore, type TaskStore } from '../../../../plugins/families/task-store/index.ts'
import type { Committed, ThreadSettings } from '../../../../plugins/store-sqlite/thread/messages.ts'
import { createSqliteStore, Writer } from '../../../../plugins/store-sqlite/writer.ts'

/** Node 22.13 or later; where there is none, the tests of files are not there either. */
export const hasSqlite = isBuiltin('node:sqlite')

export const BOUNDS: StreamLimits & Pick<ThreadSettings, 'maxSize'> = {
  ttl: 60_000,
  maxEvents: 1_000,
  maxBytes: 1_000_000,
  maxSize: 1_073_741_824,
}

export type FileSettings = Partial<Omit<ThreadSettings, 'maxSize'>> & { readonly bounds?: Partial<typeof BOUNDS> }

const opened: Writer[] = []
const folders: string[] = []
let nodes = 0

/** A disk in memory if the system has one with enough room: a busy disk can need seconds for a sync. */
function findFastDisk(): string {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm')
    if (bavail * bsize > 500_000_000) return '/dev/shm'
  } catch {}
  return tmpdir()
}

export function newFolder(disk = tmpdir()): string {
  const folder = mkdtempSync(join(disk, 'store-sqlite-'))
  folders.push(folder)
  return folder
}

export const newFile = (): string => join(newFolder(findFastDisk()), 'host.db')

/** One process's side of a file, with all stores. */
export interface OpenedFile {
  readonly writer: Writer
  readonly store: Store
  readonly node: string
  readonly sessions: SessionStore
  readonly events: EventStore
  readonly grants: GrantStore
  readonly tasks: TaskStore
  readonly log: readonly LoggedLine[]
  readonly committed: readonly Committed[]
}

/** Rejects as the start of a host does. */
export async function openFile(file: string, { bounds, ...settings }: FileSettings = {}): Promise<OpenedFile> {
  const log = createTestLog()
  const committed: Committed[] = []
  const writer = new Writer({
    ...{ file, hostId: `tests ${process.pid}`, ifDamaged: 'stop', ...settings },
    maxSize: bounds?.maxSize ?? BOUNDS.maxSize,
    log,
    committed: one => committed.push(one),
  })
  opened.push(writer)
  const node = `node-${++nodes}`
  const store = createSqliteStore(writer)
  const stores = {
    store,
    sessions: createSessionStore(store, { node, log, maxSize: bounds?.maxSize }),
    events: createEventStore(store, { ...BOUNDS, ...bounds }),
    grants: createGrantStore(store),
    tasks: createTaskStore(store, { log, clock: systemClock, mostBytes: 0.2 * (bounds?.maxSize ?? BOUNDS.maxSize) }),
  }
  // As the registry of sessions does.
  stores.sessions.onReturn?.(() => undefined)
  await writer.open()
  return { writer, node, ...stores, log: log.lines, committed }
}

/** Closes every file that was opened, and removes every folder: call it in `after`. */
export async function closeFiles(): Promise<void> {
  await Promise.all(opened.splice(0).map(writer => writer.close()))
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
}
