// The file of an audit: appends lines that hold on to each other, heals what a killed process left, goes on in a new file
// when this one is full, or was moved or emptied by others. It knows its head: the last line that is whole on disk.
import { createHash, randomBytes } from 'node:crypto'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { type Logger, StartError } from '../../core/index.ts'
import { archivesOf, moveAway, removeOldest } from './archives.ts'
import { type FileFacts, FORMAT, type Head, NO_HASH, plainSigner, type Signer, sealLine } from './chain.ts'
import { readTail, type Tail } from './tail.ts'

/** Of a new file: its owner and group read it, nobody else. */
const MODE = 0o640
/** Characters of what a killed process left that are kept. */
const MOST_TORN = 2_048

export interface FileSettings {
  /** Absolute. */
  readonly path: string
  /** What new lines are signed with comes first; the others verify what older keys signed. */
  readonly signers: readonly Signer[]
  readonly node: string
  readonly log: Logger
  /** Bytes. */
  readonly rotateAt: number
  /** Milliseconds; Infinity: never. */
  readonly rotateAfter: number
  /** Files that are kept beside the one that is written; Infinity: all. */
  readonly keep: number
}

export interface Appended {
  /** So many of the entries are whole on disk. */
  readonly written: number
  /** Why not all of them are. */
  readonly failure?: unknown
}

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code

const stampedFields = (fields: object): string => JSON.stringify({ time: new Date().toISOString(), ...fields })

export class TrailFile {
  readonly #settings: FileSettings
  readonly #signer: Signer
  #handle: FileHandle | undefined
  #head: Head = { chain: randomBytes(8).toString('hex'), seq: 0, hash: NO_HASH }
  /** Bytes of the whole lines. */
  #size = 0
  /** Bytes behind them: of a line that could not be written to its end. */
  #torn = 0
  #openedAt = 0

  constructor(settings: FileSettings) {
    this.#settings = settings
    this.#signer = settings.signers[0] ?? plainSigner
  }

  get head(): Head {
    return this.#head
  }

  /** Goes on where the file ends, or begins it. Throws a StartError for a file that is something else. */
  async start(): Promise<void> {
    const { path, node } = this.#settings
    const { facts, torn } = await this.#adopt(path)
    if (!facts) {
      // The one before was rotated away, and the process killed before there was a new one.
      const [last] = (await archivesOf(path)).slice(-1)
      if (last !== undefined) await this.#followArchive(last)
      await this.#writeOpened('start')
    } else if (facts.key !== this.#signer.key || facts.algorithm !== this.#signer.algorithm) {
      await this.#rotate('key')
    }
    if (torn.length > 0) await this.#writeHealed(torn)
    if (facts) await this.#writeOwn({ event: 'started', node })
  }

  /** `entries`: JSON objects, each of which becomes a line. */
  async append(entries: readonly string[]): Promise<Appended> {
    try {
      await this.#prepare()
      return { written: await this.#write(entries) }
    } catch (failure) {
      return { written: failure instanceof PartlyWritten ? failure.lines : 0, failure: causeOf(failure) }
    }
  }

  /** Until what is written is on the disk. */
  async sync(): Promise<void> {
    await this.#handle?.datasync()
  }

  async close(): Promise<void> {
    const handle = this.#handle
    this.#handle = undefined
    await handle?.close()
  }

  /** Sees to it that the next line goes to where it belongs: others may have moved, removed or emptied the file. */
  async #prepare(): Promise<void> {
    const { path, rotateAt, rotateAfter } = this.#settings
    const named = await stat(path).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return undefined
      throw error
    })
    const own = await this.#handle?.stat()
    if (!this.#handle || !own || named?.ino !== own.ino || named.dev !== own.dev) return this.#reopen()
    if (this.#torn > 0) await this.#cutTorn(this.#handle)
    else if (own.size > this.#size) throw new Error(`${path} is written by somebody else, too: ${OWN_FILE}`)
    else if (own.size < this.#size) return this.#goOnInCut(own.size)
    if (this.#size === 0) await this.#writeOpened('moved')
    else if (this.#size >= rotateAt) await this.#rotate('size')
    else if (Date.now() - this.#openedAt >= rotateAfter) await this.#rotate('age')
  }

  async #cutTorn(handle: FileHandle): Promise<void> {
    await handle.truncate(this.#size)
    this.#torn = 0
  }

  async #goOnInCut(size: number): Promise<void> {
    const { path, log } = this.#settings
    log.error({ file: path, was: this.#size, size, head: this.#head.hash }, 'somebody cut the audit; its chain goes on')
    this.#size = size
    await this.#writeOpened('cut')
  }

  /** After others moved the file: it may be a new one, or our own that is back. */
  async #reopen(): Promise<void> {
    const { path, log } = this.#settings
    const { seq, hash } = this.#head
    const before = this.#handle
    // Of a line that the old file has a part of, the new one gets all; what cannot be cut there, `verify` passes over.
    if (before && this.#torn > 0) await this.#cutTorn(before).catch(() => undefined)
    const handle = await open(path, 'a+', MODE)
    try {
      const { size } = await handle.stat()
      const tail = await readTail(handle, size)
      const isOurs = tail && ('empty' in tail || (tail.last.hash === hash && tail.last.seq === seq))
      if (!isOurs) throw new Error(`${path} was replaced by a file with other lines: ${OWN_FILE}`)
      this.#handle = handle
      this.#size = 'empty' in tail ? 0 : tail.size
      await handle.truncate(this.#size)
      this.#torn = 0
      this.#openedAt = Date.now()
    } catch (error) {
      await handle.close()
      throw error
    }
    await before?.close()
    if (this.#size > 0) return
    await this.#writeOpened('moved')
    log.info({ file: path, seq, head: hash }, 'the file of the audit was moved; its chain goes on in a new one')
  }

  /** Opens the file and takes over what it ends with: facts where it has a line, and what is torn, which is cut off. */
  async #adopt(path: string): Promise<{ readonly facts?: FileFacts; readonly torn: Buffer }> {
    const handle = await open(path, 'a+', MODE)
    this.#handle = handle
    const info = await handle.stat()
    const tail = info.isFile() ? await readTail(handle, info.size) : undefined
    if (!tail) {
      await this.close()
      throw new StartError(`${path} holds something else than an audit: give the audit another \`file\``, {
        exitCode: 2,
      })
    }
    this.#openedAt = info.birthtimeMs || Date.now()
    const torn = 'empty' in tail ? tail.empty : tail.torn
    if ('last' in tail) this.#follow(path, tail)
    this.#size = 'last' in tail ? tail.size : 0
    if (torn.length > 0) await handle.truncate(this.#size)
    return 'last' in tail ? { facts: tail.facts, torn } : { torn }
  }

  async #followArchive(path: string): Promise<void> {
    const handle = await open(path, 'r')
    try {
      const { size } = await handle.stat()
      const tail = await readTail(handle, size)
      if (tail && 'last' in tail) this.#follow(path, tail)
    } finally {
      await handle.close()
    }
  }

  #follow(path: string, { facts, last }: Tail): void {
    const { signers, log } = this.#settings
    this.#head = { chain: facts.chain, seq: last.seq, hash: last.hash }
    const signer = [...signers, plainSigner].find(
      ({ key, algorithm }) => key === facts.key && algorithm === facts.algorithm,
    )
    if (signer?.sign(last.signed) === last.hash) return
    const why = signer ? 'it was changed' : `its key ${facts.key} is none of our secrets`
    const fix = 'look at it with: mcp-host audit verify'
    log.error({ file: path, seq: last.seq, why, fix }, 'the last line of the audit does not verify; its chain goes on')
  }

  /** What a killed process wrote of a line is no line, but it is kept. */
  async #writeHealed(torn: Buffer): Promise<void> {
    const { path, log } = this.#settings
    const bytes = torn.length
    const sha256 = createHash('sha256').update(torn).digest('hex')
    await this.#writeOwn({ event: 'healed', bytes, sha256, text: torn.toString('utf8', 0, MOST_TORN) })
    log.warn({ file: path, bytes }, 'the last line of the audit was not whole: it was moved into a line that says so')
  }

  async #rotate(why: string): Promise<void> {
    const { path, keep, log } = this.#settings
    await this.sync()
    const archive = await moveAway(path)
    await this.close()
    this.#handle = await open(path, 'ax+', MODE)
    this.#size = 0
    this.#torn = 0
    this.#openedAt = Date.now()
    const { seq, hash } = this.#head
    log.info({ file: archive, seq, head: hash, why }, 'the audit goes on in a new file')
    await this.#writeOpened(why)
    for (const removed of await removeOldest(path, keep))
      log.info({ file: removed }, 'removed an old file of the audit')
  }

  #writeOpened(why: string): Promise<number> {
    const { algorithm, key } = this.#signer
    const { chain } = this.#head
    return this.#writeOwn({ event: 'opened', format: FORMAT, chain, algorithm, key, why, node: this.#settings.node })
  }

  #writeOwn(fields: object): Promise<number> {
    return this.#write([stampedFields(fields)])
  }

  /** Resolves with how many lines were written: all of them. */
  async #write(entries: readonly string[]): Promise<number> {
    const handle = this.#handle
    if (!handle) throw new Error('the file of the audit is closed')
    let head = this.#head
    const lines = entries.map(fields => {
      const sealed = sealLine(fields, head, this.#signer)
      head = sealed.head
      return { ...sealed, bytes: Buffer.from(sealed.text) }
    })
    const bytes = Buffer.concat(lines.map(line => line.bytes))
    let done = 0
    try {
      while (done < bytes.length) done += (await handle.write(bytes, done)).bytesWritten
    } catch (cause) {
      throw new PartlyWritten(this.#settle(lines, done), cause)
    }
    return this.#settle(lines, done)
  }

  /** What of these lines is whole on disk counts from now on. */
  #settle(lines: ReadonlyArray<{ readonly bytes: Buffer; readonly head: Head }>, done: number): number {
    let left = done
    let whole = 0
    for (const { bytes, head } of lines) {
      if (left < bytes.length) break
      left -= bytes.length
      this.#size += bytes.length
      this.#head = head
      whole++
    }
    this.#torn = left
    return whole
  }
}

class PartlyWritten extends Error {
  readonly lines: number
  constructor(lines: number, cause: unknown) {
    super('not all of it was written', { cause })
    this.lines = lines
  }
}

const causeOf = (failure: unknown) => (failure instanceof PartlyWritten ? failure.cause : failure)

const OWN_FILE = 'give each host a `file` of its own, and let others move it, not write to it'
