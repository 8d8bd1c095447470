// Power cuts: a program runs with a recorder (power-cut.c) that logs what it does to the files of a folder, and of the log
// this makes what a disk might have after a cut at any place: all that was synced, and of the rest anything, in any order.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Context } from 'mocha'
import { needsProgram } from '../../support/needs-program.ts'
import type { SeededRandom } from '../../support/seeded-random.ts'

const SOURCE = fileURLToPath(new URL('power-cut.c', import.meta.url))

export const needsCompiler = (context: Context) => needsProgram(context, 'cc', 'apt-get install gcc libc6-dev')

export interface Recorded {
  /** What the program writes to. */
  readonly folder: string
  /** For the program's environment; `killAt`: at which of its records it, and its process group, is killed. */
  env(killAt?: number): Record<string, string>
  /** How long the log is now, bytes: what was acknowledged before is to be found after any cut from here on. */
  now(): number
  records(): readonly FileRecord[]
  remove(): void
}

/** A folder, and a log of what is done to its files. */
export function createRecorded(): Recorded {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'power-cut-')))
  const [folder, log, library] = [join(root, 'disk'), join(root, 'log'), join(root, 'power-cut.so')]
  mkdirSync(folder)
  execFileSync('cc', [
    '-shared',
    '-fPIC',
    '-O2',
    '-Wall',
    '-Wextra',
    '-Werror',
    '-o',
    library,
    SOURCE,
    '-ldl',
    '-lpthread',
  ])
  return {
    folder,
    env: killAt => ({
      LD_PRELOAD: library,
      POWER_CUT_FOLDER: folder,
      POWER_CUT_LOG: log,
      POWER_CUT_AT: String(killAt ?? 0),
    }),
    now: () => statSync(log, { throwIfNoEntry: false })?.size ?? 0,
    records: () => readRecords(readFileSync(log)),
    remove: () => rmSync(root, { recursive: true, force: true }),
  }
}

export interface FileRecord {
  readonly kind: 'write' | 'truncate' | 'sync' | 'remove' | 'rename'
  /** Within the folder; empty for the folder itself. */
  readonly name: string
  /** Of a truncation: the size. */
  readonly offset: number
  /** What was written; of a renaming the new name. */
  readonly data: Buffer
  /** Where it ends in the log. */
  readonly end: number
}

const KINDS: Readonly<Record<string, FileRecord['kind']>> = {
  W: 'write',
  T: 'truncate',
  S: 'sync',
  U: 'remove',
  R: 'rename',
}
const HEADER = 24

/** The program may have been killed while it wrote its last record: that one was not done. */
function readRecords(log: Buffer): FileRecord[] {
  const records: FileRecord[] = []
  for (let at = 0; at + HEADER <= log.length; ) {
    const [letter, name] = [String.fromCharCode(log.readUInt32LE(at)), log.readUInt32LE(at + 4)]
    const [offset, length] = [Number(log.readBigUInt64LE(at + 8)), Number(log.readBigUInt64LE(at + 16))]
    const [data, end] = [at + HEADER + name, at + HEADER + name + length]
    const kind = KINDS[letter]
    if (kind === undefined) throw new Error(`the log has the record ${JSON.stringify(letter)} at ${at}`)
    if (end > log.length) break
    records.push({
      kind,
      name: log.toString('utf8', at + HEADER, data),
      offset,
      data: log.subarray(data, end),
      end,
    })
    at = end
  }
  return records
}

interface Content {
  bytes: Buffer<ArrayBufferLike>
  size: number
}

interface DiskFile {
  /** Undefined: there is no file of this name. */
  synced: Content | undefined
  /** Since its last sync. */
  pending: FileRecord[]
}

function change(content: Content, { kind, offset, data }: FileRecord): void {
  const end = kind === 'truncate' ? offset : offset + data.length
  if (end > content.bytes.length) {
    const larger = Buffer.alloc(Math.max(end, content.bytes.length * 2))
    content.bytes.copy(larger, 0, 0, content.size)
    content.bytes = larger
  }
  if (kind === 'truncate') {
    if (offset < content.size) content.bytes.fill(0, offset, content.size)
    content.size = offset
    return
  }
  data.copy(content.bytes, offset)
  content.size = Math.max(content.size, end)
}

function changed(content: Content | undefined, records: readonly FileRecord[]): Content | undefined {
  let now = content
  for (const record of records) {
    if (record.kind === 'remove') now = undefined
    else {
      now ??= { bytes: Buffer.alloc(0), size: 0 }
      change(now, record)
    }
  }
  return now
}

/** Half of a write's bytes: the first or the last. */
function torn(record: FileRecord, random: SeededRandom): FileRecord {
  const half = record.data.length >> 1
  if (record.kind !== 'write' || half === 0) return record
  if (random.below(2) === 0) return { ...record, data: record.data.subarray(0, half) }
  return { ...record, offset: record.offset + half, data: record.data.subarray(half) }
}

function shuffled<Item>(items: readonly Item[], random: SeededRandom): Item[] {
  const left = [...items]
  const drawn: Item[] = []
  while (left.length > 0) drawn.push(...left.splice(random.below(left.length), 1))
  return drawn
}

/** Of unsynced writes a disk has a random part, done in random order, the last one perhaps torn. */
function survivors(records: readonly FileRecord[], random: SeededRandom): FileRecord[] {
  // Quarters: none, some, most, all.
  const share = random.below(5)
  const chosen = shuffled(
    records.filter(() => random.below(4) < share),
    random,
  )
  const last = chosen.at(-1)
  return last && random.below(2) === 0 ? [...chosen.slice(0, -1), torn(last, random)] : chosen
}

/** What the disk has while the records are done one after the other. */
export class Disk {
  readonly #files = new Map<string, DiskFile>()

  do(record: FileRecord): void {
    const { kind, name } = record
    if (name === '') {
      this.#syncFolder()
      return
    }
    const file = this.#files.get(name) ?? { synced: undefined, pending: [] }
    this.#files.set(name, file)
    if (kind === 'sync') {
      file.synced = changed(file.synced, file.pending)
      file.pending = []
    } else if (kind === 'rename') {
      this.#files.set(record.data.toString(), file)
      this.#files.delete(name)
    } else file.pending.push(record)
  }

  /** Names are what they are; of what is in the files it says nothing. */
  #syncFolder(): void {
    for (const file of this.#files.values()) {
      const removed = file.pending.findLastIndex(({ kind }) => kind === 'remove')
      if (removed < 0) continue
      file.synced = undefined
      file.pending = file.pending.slice(removed + 1)
    }
  }

  /** The files as they might be found after a cut now. */
  cut(random: SeededRandom): Map<string, Buffer> {
    const found = new Map<string, Buffer>()
    for (const [name, { synced, pending }] of this.#files) {
      let content: Content | undefined = synced && {
        bytes: Buffer.from(synced.bytes.subarray(0, synced.size)),
        size: synced.size,
      }
      let rest: readonly FileRecord[] = pending
      for (let removed = indexOfRemoval(rest); removed >= 0; removed = indexOfRemoval(rest)) {
        // What came after a removal is of another file, which is not there before the removal is.
        if (random.below(2) === 0) {
          rest = rest.slice(0, removed)
          break
        }
        content = undefined
        rest = rest.slice(removed + 1)
      }
      content = changed(content, survivors(rest, random))
      if (content) found.set(name, content.bytes.subarray(0, content.size))
    }
    return found
  }
}

const indexOfRemoval = (records: readonly FileRecord[]) => records.findIndex(({ kind }) => kind === 'remove')

/** Replaces what is in a folder. */
export function writeFiles(folder: string, files: ReadonlyMap<string, Buffer>): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const [name, bytes] of files) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), bytes)
  }
}

/** Calls `check` with what a disk might have after cuts at so many random places from `since` on, in their order. */
export async function cutOften(
  records: readonly FileRecord[],
  cuts: number,
  random: SeededRandom,
  check: (files: ReadonlyMap<string, Buffer>, place: number) => unknown,
  since = 0,
): Promise<void> {
  const first = Math.max(
    0,
    records.findIndex(({ end }) => end >= since),
  )
  const places = Array.from({ length: cuts }, () => first + random.below(records.length - first)).sort((a, b) => a - b)
  const disk = new Disk()
  let done = 0
  for (const place of places) {
    for (; done <= place; done++) disk.do(records[done] as FileRecord)
    await check(disk.cut(random), records[place]?.end ?? 0)
  }
}
