// Appends chained lines to the audit file, repairs an incomplete end, and rotates.
import { createHash, randomBytes } from 'node:crypto'
import { type FileHandle, open, stat } from 'node:fs/promises'
import type { Logger } from '../../core/plugin.ts'
import { FORMAT, type Head, NO_HASH, plainSigner, type Signer, sealLine, stamped } from './chain.ts'
import {
  archivesOf,
  codeOf,
  moveAway,
  openTail,
  readTail,
  readTailOf,
  removeOldest,
  shownTorn,
  type Tail,
} from './files.ts'

export interface FileSettings {
  readonly path: string
  /** The first signer signs new lines, all verify. */
  readonly signers: readonly Signer[]
  readonly node: string
  readonly log: Logger
  readonly rotateAt: number
  /** Milliseconds, or Infinity. */
  readonly rotateAfter: number
  /** Number of full files to keep, or Infinity. */
  readonly keep: number
  /** Recreates a lock that was removed with its folder; rejects if another process has it. */
  hold?(): Promise<void>
}

export interface Appended {
  readonly written: number
  readonly failure?: unknown
}

async function writeLines(handle: FileHandle, entries: readonly string[], head: Head, signer: Signer) {
  let next = head
  const sealed = entries.map(fields => {
    const { text, head: own } = sealLine(fields, next, signer)
    next = own
    return { bytes: Buffer.from(text), head: own }
  })
  const bytes = Buffer.concat(sealed.map(line => line.bytes))
  let done = 0
  let failure: unknown
  try {
    while (done < bytes.length) done += (await handle.write(bytes, done)).bytesWritten
  } catch (error) {
    failure = error
  }
  let lines = 0
  let size = 0
  for (const line of sealed) {
    if (size + line.bytes.length > done) break
    size += line.bytes.length
    lines++
  }
  return { lines, size, head: sealed[lines - 1]?.head ?? head, torn: done - size, failure }
}

class PartlyWritten extends Error {
  readonly lines: number
  constructor(lines: number, cause: unknown) {
    super('not all of it was written', { cause })
    this.lines = lines
  }
}

const MODE = 0o640

export class TrailFile {
  readonly #settings: FileSettings
  readonly #signer: Signer
  #handle: FileHandle | undefined
  #head: Head = { chain: randomBytes(8).toString('hex'), seq: 0, hash: NO_HASH }
  #size = 0
  #torn = 0
  #openedAt = 0
  /** Time of the last write by this process; undefined if unknown. */
  #changedAt: number | undefined
  /** True if the chain has a line about foreign changes in this file. */
  #toldChanged = false
  #steps: (() => Promise<unknown>)[] = []
  /** An incomplete line of a killed process, until it is recorded. */
  #healing: Buffer | undefined

  constructor(settings: FileSettings) {
    this.#settings = settings
    this.#signer = settings.signers[0] ?? plainSigner
  }

  get path(): string {
    return this.#settings.path
  }

  get head(): Head {
    return this.#head
  }

  /** Throws a StartError for foreign content. Can be called again after a disk error. */
  async start(): Promise<void> {
    await this.#settings.hold?.()
    try {
      if (!this.#handle) await this.#adopt()
      else if (this.#torn > 0) await this.#cutTorn(this.#handle)
      for (let [step] = this.#steps; step; [step] = this.#steps) {
        await step()
        this.#steps.shift()
      }
    } catch (failure) {
      throw failure instanceof PartlyWritten ? failure.cause : failure
    }
    await this.#noteTime()
  }

  async append(entries: readonly string[]): Promise<Appended> {
    try {
      await this.#prepare()
      const written = await this.#write(entries)
      await this.#noteTime()
      return { written }
    } catch (failure) {
      return failure instanceof PartlyWritten
        ? { written: failure.lines, failure: failure.cause }
        : { written: 0, failure }
    }
  }

  async sync(): Promise<void> {
    await this.#handle?.datasync()
  }

  async close(): Promise<void> {
    const handle = this.#handle
    this.#handle = undefined
    await handle?.close()
  }

  async #prepare(): Promise<void> {
    const { path, rotateAt, rotateAfter } = this.#settings
    const named = await stat(path).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return undefined
      throw error
    })
    const own = await this.#handle?.stat()
    if (!this.#handle || !own || named?.ino !== own.ino || named.dev !== own.dev) return this.#reopen()
    const changedAt = this.#changedAt
    this.#changedAt = undefined
    if (this.#torn > 0) await this.#cutTorn(this.#handle)
    else if (own.size > this.#size) throw new Error(this.#foreign(own.size))
    else if (own.size < this.#size) return this.#goOnInCut(own.size)
    else if (changedAt !== undefined && own.mtimeMs !== changedAt) await this.#tellChanged('edited')
    if (this.#size === 0) await this.#writeOpened('moved')
    else if (this.#size >= rotateAt) await this.#rotate('size')
    else if (Date.now() - this.#openedAt >= rotateAfter) await this.#rotate('age')
  }

  async #noteTime(): Promise<void> {
    this.#changedAt = await this.#handle?.stat().then(
      ({ mtimeMs }) => mtimeMs,
      () => undefined,
    )
  }

  #foreign(size: number): string {
    const { seq } = this.#head
    return (
      `${this.#settings.path} is also written by another program: ${size - this.#size} bytes after seq ${seq} are not from this host. ${OWN_FILE}; ` +
      'move the file away, and the chain continues in a new file'
    )
  }

  /** Records that lines were possibly changed; `verify` reports which. */
  async #tellChanged(how: 'edited' | 'replaced'): Promise<void> {
    if (this.#toldChanged) return
    const { path, log } = this.#settings
    this.#toldChanged = true
    const fix = `check it with: mcp-host audit verify ${path}`
    log.error({ code: 'MH2220', file: path, seq: this.#head.seq, how, fix }, 'Another program changed the audit file')
    await this.#writeOwn({ event: 'changed', how })
  }

  async #cutTorn(handle: FileHandle): Promise<void> {
    await handle.truncate(this.#size)
    this.#torn = 0
  }

  async #goOnInCut(size: number): Promise<void> {
    const { path, log } = this.#settings
    log.error(
      { code: 'MH2220', file: path, was: this.#size, size, head: this.#head.hash },
      'Another program truncated the audit file',
    )
    this.#size = size
    await this.#writeOpened('cut')
  }

  /** Another program moved the file: the path has a new file, or this file again. */
  async #reopen(): Promise<void> {
    const { path, log } = this.#settings
    const { seq, hash } = this.#head
    const before = this.#handle
    this.#changedAt = undefined
    // If the incomplete line cannot be removed here, `verify` reports it.
    if (before && this.#torn > 0) await this.#cutTorn(before).catch(() => undefined)
    await this.#settings.hold?.()
    const handle = await open(path, 'a+', MODE)
    const { size, ino } = await handle.stat()
    try {
      const tail = await readTail(handle, size)
      const isOurs = tail && ('empty' in tail || (tail.last.hash === hash && tail.last.seq === seq))
      if (!isOurs) throw new Error(`${path} was replaced by another file: ${OWN_FILE}; move it away`)
      this.#handle = handle
      this.#size = 'empty' in tail ? 0 : tail.size
      await handle.truncate(this.#size)
      this.#torn = 0
      this.#openedAt = Date.now()
    } catch (error) {
      await handle.close()
      throw error
    }
    const known = await before?.stat()
    await before?.close()
    this.#toldChanged = false
    if (this.#size > 0) return known && known.ino !== ino ? this.#tellChanged('replaced') : undefined
    await this.#writeOpened('moved')
    log.info({ code: 'MH2221', file: path, seq, head: hash }, 'The audit continues in a new file')
  }

  async #adopt(): Promise<void> {
    const { path, node } = this.#settings
    const { handle, tail, bornAt } = await openTail(path, MODE)
    const torn = 'empty' in tail ? tail.empty : tail.torn
    const size = 'last' in tail ? tail.size : 0
    if (torn.length > 0) {
      this.#heal(path, torn)
      await handle.truncate(size).catch(async (error: unknown) => {
        await handle.close()
        throw error
      })
    }
    this.#handle = handle
    this.#openedAt = bornAt
    this.#size = size
    const facts = 'last' in tail ? tail.facts : undefined
    if ('last' in tail) this.#follow(path, tail)
    this.#steps = facts ? [] : [() => this.#start()]
    if (facts && (facts.key !== this.#signer.key || facts.algorithm !== this.#signer.algorithm))
      this.#steps.push(() => (this.#size > 0 ? this.#rotate('key') : this.#writeOpened('key')))
    this.#steps.push(() => this.#writeHealed())
    if (facts) this.#steps.push(() => this.#writeOwn({ event: 'started', node }))
  }

  async #start(): Promise<void> {
    // The process was killed between rotation and the new file.
    const [last] = (await archivesOf(this.#settings.path)).slice(-1)
    const tail = last === undefined ? undefined : await readTailOf(last)
    if (last !== undefined && tail) this.#follow(last, tail)
    // The archive stays unchanged; `verify` accepts its end for the `healed` line.
    if (last !== undefined && tail && tail.torn.length > 0) this.#heal(last, tail.torn)
    await this.#writeOpened('start')
  }

  #heal(file: string, torn: Buffer): void {
    const { log } = this.#settings
    const text = shownTorn(torn)
    if (!this.#healing)
      log.warn({ code: 'MH2222', file, bytes: torn.length, text }, 'the last line of the audit was incomplete')
    this.#healing = torn
  }

  #follow(path: string, { facts, last }: Tail): void {
    const { signers, log } = this.#settings
    this.#head = { chain: facts.chain, seq: last.seq, hash: last.hash }
    const signer = [...signers, plainSigner].find(
      ({ key, algorithm }) => key === facts.key && algorithm === facts.algorithm,
    )
    if (signer?.sign(last.signed) === last.hash) return
    const why = signer ? 'it was changed' : `its key ${facts.key} does not belong to the configured secrets`
    const fix = 'check it with: mcp-host audit verify'
    log.error({ code: 'MH2223', file: path, seq: last.seq, why, fix }, 'The last audit line does not verify')
  }

  async #writeHealed(): Promise<void> {
    const torn = this.#healing
    if (!torn) return
    const sha256 = createHash('sha256').update(torn).digest('hex')
    await this.#writeOwn({ event: 'healed', bytes: torn.length, sha256, text: shownTorn(torn) })
    this.#healing = undefined
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
    this.#toldChanged = false
    const { seq, hash } = this.#head
    log.info({ code: 'MH2221', file: archive, seq, head: hash, why }, 'The audit continues in a new file')
    await this.#writeOpened(why)
    for (const removed of await removeOldest(path, keep))
      log.info({ code: 'MH2224', file: removed }, 'removed an old file of the audit')
  }

  #writeOpened(why: string): Promise<number> {
    const { algorithm, key } = this.#signer
    const { chain } = this.#head
    return this.#writeOwn({ event: 'opened', format: FORMAT, chain, algorithm, key, why, node: this.#settings.node })
  }

  #writeOwn(fields: object): Promise<number> {
    return this.#write([stamped(fields)])
  }

  async #write(entries: readonly string[]): Promise<number> {
    const handle = this.#handle
    if (!handle) throw new Error('the file of the audit is closed')
    const { lines, size, head, torn, failure } = await writeLines(handle, entries, this.#head, this.#signer)
    this.#size += size
    this.#head = head
    this.#torn = torn
    if (failure !== undefined) throw new PartlyWritten(lines, failure)
    return lines
  }
}

const OWN_FILE = 'set a separate `file` for each host, and let no other program write to it'
