// The ids of a stream's events: what a client comes back with says which stream of which session it was, and how far it
// read (2025-11-25 basic/transports, "Resumability and Redelivery").
import { createHmac, randomBytes } from 'node:crypto'

/** Names a place in a stream: `<stream>.<seq>`. The stream's name says of which session it is. */
export interface EventId {
  readonly stream: string
  readonly seq: number
}

/** The place that a `Last-Event-ID` names; undefined for what is none of ours. */
export function parseEventId(text: string): EventId | undefined {
  const [, stream, seq] = /^([\w-]{16})\.(\d{1,15})$/.exec(text) ?? []
  return stream === undefined ? undefined : { stream, seq: Number(seq) }
}

/** Bytes of a stream's name: what is random, then what ties that to the session. */
const RANDOM_BYTES = 8
const TIE_BYTES = 4

const tieOf = (session: string, random: Buffer) =>
  createHmac('sha256', session).update(random).digest().subarray(0, TIE_BYTES)

/** A name that no other stream has. */
export function createStreamName(session: string): string {
  const random = randomBytes(RANDOM_BYTES)
  return Buffer.concat([random, tieOf(session, random)]).toString('base64url')
}

/**
 * Whether a stream of this name may have been the session's: no store has to remember it, so that an id of events that
 * are gone is told from one that never was. Nothing is protected by it: streams are looked for among the session's own.
 */
export function isStreamOf(session: string, name: string): boolean {
  const bytes = Buffer.from(name, 'base64url')
  return tieOf(session, bytes.subarray(0, RANDOM_BYTES)).equals(bytes.subarray(RANDOM_BYTES))
}
