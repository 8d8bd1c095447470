// The lines of an audit and how each holds on to the one before: what is written (trail-file.ts) and what is verified
// (verify-trail.ts) go by the same few rules.
import { createHash, createHmac } from 'node:crypto'

/** What signs the lines: a key, or nothing but the hash. */
export interface Signer {
  readonly algorithm: 'hmac-sha256' | 'sha256'
  /** Names the key and tells nothing of it: 8 hexadecimal digits; undefined where there is none. */
  readonly key: string | undefined
  /** 64 hexadecimal digits. */
  sign(text: string | Buffer): string
}

/** What the next line follows: `chain` names the chain, `seq` and `hash` are those of its last line. */
export interface Head {
  readonly chain: string
  readonly seq: number
  readonly hash: string
}

/** Before the first line of a chain. */
export const NO_HASH = '0'.repeat(64)
/** Of the first line of a file. */
export const FORMAT = 1
/** Bytes of one line. Ours have some thousand; no longer one is read into memory. */
export const MOST_LINE = 256 * 1024

const HASH = /^[\da-f]{64}$/
/** Behind what is signed: `,"hash":"…"}`. */
const HASH_FIELD = /^,"hash":"([\da-f]{64})"\}$/
const HASH_LENGTH = 75

/** By HMAC-SHA-256: who has no key cannot make a line that verifies. */
export function keySigner(key: Buffer): Signer {
  const sign = (text: string | Buffer) => createHmac('sha256', key).update(text).digest('hex')
  return { algorithm: 'hmac-sha256', key: sign('the name of this key').slice(0, 8), sign }
}

/** Without a key: finds what was spoilt by accident or by somebody who knows nothing of it. */
export const plainSigner: Signer = {
  algorithm: 'sha256',
  key: undefined,
  sign: text => createHash('sha256').update(text).digest('hex'),
}

export interface SealedLine {
  /** With the line break. */
  readonly text: string
  readonly head: Head
}

/** The line that follows `head`; `fields`: a JSON object that has some. */
export function sealLine(fields: string, { chain, seq, hash: prev }: Head, signer: Signer): SealedLine {
  const next = seq + 1
  const signed = `{"seq":${next},"prev":"${prev}",${fields.slice(1, -1)}`
  const hash = signer.sign(signed)
  return { text: `${signed},"hash":"${hash}"}\n`, head: { chain, seq: next, hash } }
}

/** What a line says of itself. */
export interface ReadLine {
  readonly seq: number
  readonly prev: string
  readonly hash: string
  /** The bytes that `hash` is of. */
  readonly signed: Buffer
  readonly fields: Readonly<Record<string, unknown>>
}

/** `line`: without its line break. Undefined for what is no line of an audit. */
export function readLine(line: Buffer): ReadLine | undefined {
  const at = line.length - HASH_LENGTH
  const hash = at > 0 ? HASH_FIELD.exec(line.toString('latin1', at))?.[1] : undefined
  if (hash === undefined) return undefined
  try {
    const fields = JSON.parse(line.toString()) as Record<string, unknown>
    const { seq, prev } = fields
    if (typeof seq !== 'number' || typeof prev !== 'string' || !HASH.test(prev)) return undefined
    return { seq, prev, hash, signed: line.subarray(0, at), fields }
  } catch {
    return undefined
  }
}

/** What the first line of a file says of all of it. */
export interface FileFacts {
  readonly chain: string
  readonly algorithm: string
  readonly key: string | undefined
}

/** Names of chains, keys and algorithms are short words: what else stands there reaches no terminal. */
const isWord = (value: unknown): value is string => typeof value === 'string' && /^[\w-]{1,32}$/.test(value)

/** Undefined where it is no first line. */
export function factsIn(line: ReadLine | undefined): FileFacts | undefined {
  const { event, chain, algorithm, key } = line?.fields ?? {}
  if (event !== 'opened' || !isWord(chain) || !isWord(algorithm)) return undefined
  return { chain, algorithm, key: key === undefined ? undefined : isWord(key) ? key : 'that is no name of one' }
}
