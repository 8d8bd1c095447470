// What is kept beside the events of a stream: who writes it, and what it is to answer.
import type { RequestId } from '../../mcp/protocol.ts'

export interface StreamFacts {
  readonly node: string
  /** None: it carries what belongs to no call. */
  readonly requests: readonly RequestId[]
}

export const writeFacts = (facts: StreamFacts): string => JSON.stringify(facts)

export const readFacts = (text: string): StreamFacts => JSON.parse(text)
