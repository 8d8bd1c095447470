// What the doctor knows while it looks: the address, what it was given, and the first answer.
import type { Answer } from './ask.ts'

export interface Patient {
  /** As given. */
  readonly url: string
  readonly token: string | undefined
  /** Of the page whose browser would call; for CORS. */
  readonly origin: string | undefined
  /** What a call without a token got. */
  readonly first: Answer
}
