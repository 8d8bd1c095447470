// The mark of a result that is not the protocol's complete one, for what authors write (define.ts) and what reads it
// (result-type.ts).

/** On a result: its type. Only the host and extensions can put it there, never a handler's own object. */
export const RESULT_TYPE = Symbol('result type')

/** A result that an extension made. */
export interface TypedResult {
  readonly [RESULT_TYPE]: object
}
