// The line format of an audit: how lines are chained, signed and read.
import { createHash, createHmac } from 'node:crypto'

export interface Signer {
  readonly algorithm: 'hmac-sha256' | 'sha256'
  /** The key id: 8 hexadecimal digits; undefined without a key. */
  readonly key: string | undefined
  /** Returns 64 hexadecimal digits. */
  sign(text: string | Buffer): string
}

export interface Head {
  readonly chain: string
  readonly seq: number
  readonly hash: string
}

export const NO_HASH = '0'.repeat(64)
export const FORMAT = 1
/** Maximum bytes of a line. Longer lines are not read into memory. */
export const MAX_LINE = 256 * 1024

const HASH = /^[\da-f]{64}$/
const HASH_FIELD = /^,"hash":"([\da-f]{64})"\}$/
const HASH_LENGTH = 75

/** Signs with HMAC-SHA-256. Without the key, valid lines cannot be created. */
export function keySigner(key: Buffer): Signer {
  const sign = (text: string | Buffer) => createHmac('sha256', key).update(text).digest('hex')
  return { algorithm: 'hmac-sha256', key: sign('the name of this key').slice(0, 8), sign }
}

/** Signs without a key, which detects only accidental damage. */
export const plainSigner: Signer = {
  algorithm: 'sha256',
  key: undefined,
  sign: text => createHash('sha256').update(text).digest('hex'),
}

/** Adds the time, which comes first in a line. */
export const stamped = (fields: object, at = Date.now()): string =>
  JSON.stringify({ time: new Date(at).toISOString(), ...fields })

export function sealLine(fields: string, { chain, seq, hash: prev }: Head, signer: Signer) {
  const next = seq + 1
  const signed = `{"seq":${next},"prev":"${prev}",${fields.slice(1, -1)}`
  const hash = signer.sign(signed)
  return { text: `${signed},"hash":"${hash}"}\n`, head: { chain, seq: next, hash } }
}

export interface ReadLine {
  readonly seq: number
  readonly prev: string
  readonly hash: string
  readonly signed: Buffer
  readonly fields: Readonly<Record<string, unknown>>
}

/** Parses a line without its line break. Undefined if the line is invalid. */
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

export interface FileFacts {
  readonly chain: string
  readonly algorithm: string
  readonly key: string | undefined
}

/** Accepts only words, because other values must not reach a terminal. */
const isWord = (value: unknown): value is string => typeof value === 'string' && /^[\w-]{1,32}$/.test(value)

export function factsIn(line: ReadLine | undefined): FileFacts | undefined {
  const { event, chain, algorithm, key } = line?.fields ?? {}
  if (event !== 'opened' || !isWord(chain) || !isWord(algorithm)) return undefined
  return { chain, algorithm, key: key === undefined ? undefined : isWord(key) ? key : 'the name is invalid' }
}
