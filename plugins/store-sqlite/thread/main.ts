// The thread with the database connection: runs queued operations, and reports whether the file is writable.
import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { closeDatabase, MEMORY, openDatabase, readIdentity, replaceDamaged } from './database.ts'
import { acquireHostLock } from './host-lock.ts'
import {
  type Answer,
  type Batch,
  type Command,
  type Failure,
  StoreFailure,
  type ThreadEvent,
  type ThreadSettings,
  toFailure,
} from './messages.ts'
import { createTransactions } from './transactions.ts'
import { createUpkeep } from './upkeep.ts'

const settings = workerData as ThreadSettings
if (!parentPort) throw new Error('this file is for a thread')
const port = parentPort

/** Interval of upkeep steps, milliseconds; `busy` if there is more to do. */
const INTERVALS = { quiet: 1_000, busy: 50 }
const MAX_BATCH = 1_000
/** Bytes written to check whether there is room. */
const PROBE = 65_536

const post = (event: ThreadEvent) => port.postMessage(event)

const LOCK = `${settings.file}.lock`

const isDamage = (failure: Failure | undefined) => failure?.code === 'damaged' || failure?.code === 'alien'

function openOrReplace(isFirst: boolean) {
  const { file, ifDamaged, maxSize } = settings
  try {
    return { ...openDatabase(file, { maxSize, isFirst }), replaced: undefined }
  } catch (error) {
    if (!isFirst || ifDamaged === 'stop' || !isDamage(toFailure(error))) throw error
    const replaced = replaceDamaged(file)
    return { ...openDatabase(file, { maxSize, isFirst: false }), replaced }
  }
}

function open() {
  const { file, hostId, maxSize } = settings
  const { value, lock, leave } =
    file === MEMORY
      ? { value: openOrReplace(false), lock: MEMORY, leave: () => undefined }
      : acquireHostLock(LOCK, hostId, openOrReplace)
  const { db } = value
  const transactions = createTransactions(db, committed => post({ type: 'committed', committed }))
  const upkeep = createUpkeep(db, maxSize, transactions.write)
  return { ...value, transactions, upkeep, lock, leave }
}

type Opened = ReturnType<typeof open>

let opened: Opened | undefined
let lastFailure: Failure | undefined
let timer: NodeJS.Timeout | undefined

function setFailure(failure: Failure | undefined) {
  if (failure?.code === lastFailure?.code) return
  lastFailure = failure
  post({ type: 'trouble', failure })
}

function close() {
  const { db, leave } = opened ?? {}
  opened = undefined
  try {
    if (db) closeDatabase(db)
  } finally {
    leave?.()
  }
}

/** Throws if another program deleted or replaced the file or its lock: writes would be lost. */
function checkIdentity() {
  if (!opened || opened.lock === MEMORY) return
  if (readIdentity(settings.file) === opened.identity && readIdentity(LOCK) === opened.lock) return
  throw new StoreFailure('moved', 'another program deleted or replaced it')
}

function run(operations: Batch['operations']): readonly Answer[] {
  try {
    checkIdentity()
  } catch (error) {
    const failure = toFailure(error)
    setFailure(failure)
    return operations.map(() => ({ failure }))
  }
  if (lastFailure && isDamage(lastFailure)) return operations.map(() => ({ failure: lastFailure as Failure }))
  return opened?.transactions.run(operations) ?? []
}

/** Reports a failure. After the file was deleted or replaced, writes can fail as on a read-only file. */
function reportFailure(failure: Failure) {
  try {
    checkIdentity()
    setFailure(failure)
  } catch (error) {
    setFailure(toFailure(error))
  }
}

function serve(batches: readonly Batch[]) {
  const queue = batches.flatMap(batch => batch.operations)
  const results: Answer[] = []
  for (let from = 0; from < queue.length; from += MAX_BATCH) results.push(...run(queue.slice(from, from + MAX_BATCH)))
  const failed = results.find(result => 'failure' in result && !['late', 'bug'].includes(result.failure.code))
  if (failed && 'failure' in failed) reportFailure(failed.failure)
  let from = 0
  for (const { batch, operations: own } of batches) {
    post({ type: 'answers', batch, answers: results.slice(from, from + own.length) })
    from += own.length
  }
  makeRoom()
}

function makeRoom() {
  try {
    if (opened?.upkeep.isNearlyFull()) opened.upkeep.step()
  } catch (error) {
    reportFailure(toFailure(error))
  }
}

function isDiskFull(): boolean {
  const { file } = settings
  if (file === MEMORY) return false
  const { bavail, bsize } = statfsSync(dirname(file))
  return bavail * bsize < PROBE
}

function probeDisk({ transactions, db }: Opened) {
  transactions.write(() => {
    db.exec(`INSERT INTO probe VALUES (1, zeroblob(${PROBE})) ON CONFLICT DO UPDATE SET filler = excluded.filler`)
    db.exec('DELETE FROM probe')
  }, 'durable')
}

function runUpkeep() {
  let more = false
  try {
    checkIdentity()
    if (opened && !isDamage(lastFailure)) {
      more = opened.upkeep.step()
      if (lastFailure || isDiskFull()) probeDisk(opened)
      post({ type: 'size', bytes: opened.upkeep.bytes, evicted: opened.upkeep.evicted })
      setFailure(undefined)
    }
  } catch (error) {
    reportFailure(toFailure(error))
  }
  timer = setTimeout(runUpkeep, more ? INTERVALS.busy : INTERVALS.quiet)
}

function start() {
  try {
    opened = open()
    post({ type: 'open', replaced: opened.replaced })
  } catch (error) {
    post({ type: 'failed', failure: toFailure(error) })
    port.close()
    return
  }
  port.on('message', (first: Batch | Command) => {
    const waiting = [first]
    for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) waiting.push(next.message)
    const batches = waiting.filter(message => typeof message !== 'string')
    if (batches.length > 0) serve(batches)
    if (waiting.includes('close')) end()
  })
  runUpkeep()
}

function end() {
  clearTimeout(timer)
  try {
    close()
  } finally {
    post({ type: 'closed' })
    port.close()
  }
}

start()
