// The type of a result that is not complete: requests to the client, or a result of an extension.

/** Key of a result's type. Only the host and extensions can set it, never a handler's own object. */
export const RESULT_TYPE = Symbol('result type')

/** A result of an extension. */
export interface TypedResult {
  readonly [RESULT_TYPE]: object
}

/** The values of `resultType` of the protocol (2026-07-28 basic, "ResultType"). */
export const RESULT_TYPES: ReadonlySet<string> = new Set(['complete', 'input_required'])

interface ResultType {
  readonly name: string
  /** Throws if a call must not be answered with it. */
  check?(call: object): void
}

/** The type of a result; undefined for a complete result and for other values. */
export const resultTypeOf = (value: unknown): ResultType | undefined =>
  typeof value === 'object' && value !== null ? (value as { [RESULT_TYPE]?: ResultType })[RESULT_TYPE] : undefined

/** Whether a handler's value is a result already. */
export const isTyped = (value: unknown): value is object => resultTypeOf(value) !== undefined
