// What is noted of a Call on its way, for the record of it that observers are told of when it is over. Of Calls that nobody
// observes nothing is kept.
import { type Call, type CallNotes, keepNotes, notesOf } from './call.ts'
import type { EncodedAnswer } from './wire.ts'

const NOTHING: readonly string[] = []

/** From now on notes are kept of it, where they are given back. */
export function watchCall(call: Call): CallNotes {
  const notes = { bytesOut: undefined, asked: NOTHING }
  keepNotes(call, notes)
  return notes
}

/** What is noted of one is noted of the other. */
export function shareNotes(call: Call, other: Call): void {
  const notes = notesOf(other)
  if (notes) keepNotes(call, notes)
}

/** This is the answer to a call. */
export function noteAnswer(call: Call, answer: EncodedAnswer): void {
  const notes = notesOf(call)
  if (notes) notes.bytesOut = typeof answer === 'string' ? Buffer.byteLength(answer) : answer.bytes.length
}

/** Its handler asks the client, as with `sampling/createMessage`. */
export function noteQuestion(call: Call, method: string): void {
  const notes = notesOf(call)
  if (notes && !notes.asked.includes(method)) notes.asked = [...notes.asked, method]
}
