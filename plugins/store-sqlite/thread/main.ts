// The thread with the database connection: runs queued operations, and reports whether the file is writable.
import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { joinCrew } from './crew.ts'
import { closeDatabase, identityOf, MEMORY, openDatabase, replaceDamaged } from './database.ts'
import {
  type Answer,
  type Batch,
  type Fault,
  faultOf,
  type News,
  type Order,
  StoreFault,
  type ThreadSettings,
} from './messages.ts'
import { createTransactions } from './transactions.ts'
import { createUpkeep } from './upkeep.ts'

const settings = workerData as ThreadSettings
if (!parentPort) throw new Error('this file is for a thread')
const port = parentPort

/** Interval of upkeep steps, milliseconds; `busy` if there is more to do. */
const PACE = { quiet: 1_000, busy: 50 }
const MOST = 1_000
/** Bytes written to check whether there is room. */
const PROBE = 65_536

const tell = (news: News) => port.postMessage(news)

const LOCK = `${settings.file}.lock`

const isDamage = (fault: Fault | undefined) => fault?.word === 'damaged' || fault?.word === 'alien'

function openWhole(isFirst: boolean) {
  const { file, ifDamaged, maxSize } = settings
  try {
    return { ...openDatabase(file, { maxSize, isFirst }), replaced: undefined }
  } catch (error) {
    if (!isFirst || ifDamaged === 'stop' || !isDamage(faultOf(error))) throw error
    const replaced = replaceDamaged(file)
    return { ...openDatabase(file, { maxSize, isFirst: false }), replaced }
  }
}

function open() {
  const { file, crew, maxSize } = settings
  const { value, lock, leave } =
    file === MEMORY
      ? { value: openWhole(false), lock: MEMORY, leave: () => undefined }
      : joinCrew(LOCK, crew, openWhole)
  const { db } = value
  const transactions = createTransactions(db, committed => tell({ news: 'committed', committed }))
  const upkeep = createUpkeep(db, maxSize, transactions.write)
  return { ...value, transactions, upkeep, lock, leave }
}

type Opened = ReturnType<typeof open>

let opened: Opened | undefined
let trouble: Fault | undefined
let timer: NodeJS.Timeout | undefined

function judge(fault: Fault | undefined) {
  if (fault?.word === trouble?.word) return
  trouble = fault
  tell({ news: 'trouble', fault })
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
function checkPlace() {
  if (!opened || opened.lock === MEMORY) return
  if (identityOf(settings.file) === opened.identity && identityOf(LOCK) === opened.lock) return
  throw new StoreFault('moved', 'another program deleted or replaced it')
}

function run(asks: Batch['asks']): readonly Answer[] {
  try {
    checkPlace()
  } catch (error) {
    const fault = faultOf(error)
    judge(fault)
    return asks.map(() => ({ fault }))
  }
  if (trouble && isDamage(trouble)) return asks.map(() => ({ fault: trouble as Fault }))
  return opened?.transactions.run(asks) ?? []
}

function judgeBy(answers: readonly Answer[]) {
  const found = answers.find(answer => 'fault' in answer && !['late', 'bug'].includes(answer.fault.word))
  if (found && 'fault' in found) judge(found.fault)
}

function serve(batches: readonly Batch[]) {
  const asks = batches.flatMap(batch => batch.asks)
  const answers: Answer[] = []
  for (let from = 0; from < asks.length; from += MOST) answers.push(...run(asks.slice(from, from + MOST)))
  judgeBy(answers)
  let from = 0
  for (const { batch, asks: own } of batches) {
    tell({ news: 'answers', batch, answers: answers.slice(from, from + own.length) })
    from += own.length
  }
  makeRoom()
}

function makeRoom() {
  try {
    if (opened?.upkeep.isNearlyFull()) opened.upkeep.step()
  } catch (error) {
    judge(faultOf(error))
  }
}

function isTight(): boolean {
  const { file } = settings
  if (file === MEMORY) return false
  const { bavail, bsize } = statfsSync(dirname(file))
  return bavail * bsize < PROBE
}

function probe({ transactions, db }: Opened) {
  transactions.write(() => {
    db.exec(`INSERT INTO probe VALUES (1, zeroblob(${PROBE})) ON CONFLICT DO UPDATE SET filler = excluded.filler`)
    db.exec('DELETE FROM probe')
  }, 'durable')
}

function keepUp() {
  let more = false
  try {
    checkPlace()
    if (opened && !isDamage(trouble)) {
      more = opened.upkeep.step()
      if (trouble || isTight()) probe(opened)
      tell({ news: 'size', bytes: opened.upkeep.bytes, evicted: opened.upkeep.evicted })
      judge(undefined)
    }
  } catch (error) {
    judge(faultOf(error))
  }
  timer = setTimeout(keepUp, more ? PACE.busy : PACE.quiet)
}

function begin() {
  try {
    opened = open()
    tell({ news: 'open', replaced: opened.replaced })
  } catch (error) {
    tell({ news: 'failed', fault: faultOf(error) })
    port.close()
    return
  }
  port.on('message', (first: Batch | Order) => {
    const waiting = [first]
    for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) waiting.push(next.message)
    const batches = waiting.filter(message => typeof message !== 'string')
    if (batches.length > 0) serve(batches)
    if (waiting.includes('close')) end()
  })
  keepUp()
}

function end() {
  clearTimeout(timer)
  try {
    close()
  } finally {
    tell({ news: 'closed' })
    port.close()
  }
}

begin()
