// Verifies audit files for `mcp-host audit verify`: follows each chain over its files to the first invalid line.
import { createHash } from 'node:crypto'
import { type FileFacts, factsIn, NO_HASH, plainSigner, type ReadLine, readLine, type Signer } from './chain.ts'
import { linesOf } from './files.ts'

export interface Expectations {
  readonly signers: readonly Signer[]
  /** Accepts unsigned files although keys exist. */
  readonly allowPlain: boolean
  readonly heads: readonly string[]
}

export interface Broken {
  readonly file: string
  readonly line?: number
  readonly what: string
  readonly isKeyMissing?: true
}

export interface ChainReport
  extends Readonly<
    Pick<Follower, 'lines' | 'firstSeq' | 'firstTime' | 'lastTime' | 'lost' | 'refused' | 'healed' | 'changed'>
  > {
  readonly chain: string
  readonly files: readonly string[]
  readonly lastSeq: number
  /** Signatures such as `hmac-sha256 with key 1a2b3c4d`. */
  readonly signedBy: readonly string[]
  readonly head: string
  readonly broken?: Broken
}

interface Opening {
  readonly file: string
  readonly facts: FileFacts
  readonly seq: number
}

async function openingOf(file: string): Promise<Opening | Broken> {
  for await (const { bytes } of linesOf(file)) {
    const line = bytes && readLine(bytes)
    const facts = factsIn(line)
    if (line && facts) return { file, facts, seq: line.seq }
    break
  }
  return {
    file,
    line: 1,
    what: 'it is not the first line of an audit, which has "event":"opened" and the name of the chain',
  }
}

class Follower {
  readonly #expected: Expectations
  readonly #missing: Set<string>
  lines = 0
  firstSeq = 0
  seq = 0
  hash = ''
  firstTime = ''
  lastTime = ''
  lost = 0
  refused = 0
  healed = 0
  /** Number of foreign changes that the host noticed. */
  changed = 0
  /** Incomplete ends of earlier files by hash, until a `healed` line. */
  readonly torn = new Map<string, Broken>()
  readonly signedBy = new Set<string>()

  constructor(expected: Expectations, missing: Set<string>) {
    this.#expected = expected
    this.#missing = missing
  }

  signerFor({ algorithm, key }: FileFacts): Signer | Omit<Broken, 'file'> {
    const { signers, allowPlain } = this.#expected
    if (algorithm === plainSigner.algorithm) {
      if (allowPlain || signers.length === 0) return plainSigner
      return {
        what: 'it has no key although secrets are set, so anyone could have written it; accept it with --allow-plain',
      }
    }
    const signer = signers.find(one => one.algorithm === algorithm && one.key === key)
    if (signer) return signer
    const why = signers.length === 0 ? 'no key was given' : `the secrets result in ${signers.length} other keys`
    return { what: `it is signed with key ${key}, and ${why}`, isKeyMissing: true }
  }

  follow(line: ReadLine | undefined, signer: Signer): string | undefined {
    if (!line) return 'it is not an audit line'
    const { seq, prev, hash, signed, fields } = line
    if (signer.sign(signed) !== hash) return `seq ${seq} was changed: its hash does not match its content`
    const isFirst = this.lines === 0
    if (!isFirst && seq !== this.seq + 1) return `found seq ${seq}, expected ${this.seq + 1}: ${gapOf(seq, this.seq)}`
    const before = isFirst ? (seq === 1 ? NO_HASH : prev) : this.hash
    if (prev !== before)
      return `seq ${seq} does not follow the line before: its prev is ${prev}, expected was ${before}`
    this.#count(fields)
    if (isFirst) this.firstSeq = seq
    this.seq = seq
    this.hash = hash
    this.#missing.delete(hash)
    return undefined
  }

  #count({ time, event, lost, refused, sha256 }: ReadLine['fields']): void {
    const at = typeof time === 'string' ? time.slice(0, 30) : ''
    if (this.lines++ === 0) this.firstTime = at
    this.lastTime = at
    if (event === 'healed') {
      this.healed++
      this.torn.delete(String(sha256))
    }
    if (event === 'changed') this.changed++
    if (event !== 'gap') return
    this.lost += countIn(lost)
    this.refused += countIn(refused)
  }
}

const countIn = (value: unknown): number => (typeof value === 'number' && value > 0 ? value : 0)

const gapOf = (found: number, last: number) =>
  found <= last ? 'lines were repeated or swapped' : `${found - last - 1} lines are missing`

async function followFile({ file, facts }: Opening, follower: Follower, isLast: boolean): Promise<Broken | undefined> {
  const signer = follower.signerFor(facts)
  if (!('sign' in signer)) return { file, ...signer }
  follower.signedBy.add(
    facts.key === undefined ? `${facts.algorithm} without a key` : `${facts.algorithm} with key ${facts.key}`,
  )
  for await (const { number, bytes, ended } of linesOf(file)) {
    if (!ended && bytes) {
      if (isLast) return { file, line: number, what: UNENDED }
      // These bytes are unsigned: only a later signed line can confirm them.
      follower.torn.set(createHash('sha256').update(bytes).digest('hex'), { file, line: number, what: NOT_HEALED })
      return undefined
    }
    const what = follower.follow(bytes && readLine(bytes), signer)
    if (what !== undefined) return { file, line: number, what }
  }
  return undefined
}

const UNENDED = 'it has no end: it is being written, or its writer was killed; the next start adds a `healed` line'
const NOT_HEALED = 'it has no end, and no `healed` line of a later file has its hash: someone else wrote it'

async function followChain(
  openings: readonly Opening[],
  expected: Expectations,
  missing: Set<string>,
): Promise<ChainReport> {
  const follower = new Follower(expected, missing)
  let broken: Broken | undefined
  for (const [index, opening] of openings.entries()) {
    broken = await followFile(opening, follower, index === openings.length - 1)
    if (broken) break
  }
  broken ??= follower.torn.values().next().value
  const { lines, firstSeq, seq: lastSeq, firstTime, lastTime, lost, refused, healed, changed, hash: head } = follower
  const files = openings.map(({ file }) => file)
  const chain = openings[0]?.facts.chain ?? ''
  const counts = { lines, firstSeq, lastSeq, firstTime, lastTime, lost, refused, healed, changed }
  return { chain, files, ...counts, signedBy: [...follower.signedBy], head, ...(broken && { broken }) }
}

interface TrailReport {
  readonly chains: readonly ChainReport[]
  readonly strange: readonly Broken[]
  /** Expected heads without a line; only meaningful if nothing is broken. */
  readonly missingHeads: readonly string[]
}

export async function verifyTrail(files: readonly string[], expected: Expectations): Promise<TrailReport> {
  const chains = new Map<string, Opening[]>()
  const strange: Broken[] = []
  for (const file of files) {
    const opening = await openingOf(file)
    if (!('facts' in opening)) strange.push(opening)
    else chains.set(opening.facts.chain, [...(chains.get(opening.facts.chain) ?? []), opening])
  }
  const missing = new Set(expected.heads)
  const reports: ChainReport[] = []
  for (const openings of chains.values()) {
    reports.push(
      await followChain(
        openings.sort((one, other) => one.seq - other.seq),
        expected,
        missing,
      ),
    )
  }
  return { chains: reports, strange, missingHeads: [...missing] }
}
