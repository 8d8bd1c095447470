// The type of an incomplete result: client requests, or a result of an extension.

/** Only the host and extensions can set this key. */
export const RESULT_TYPE = Symbol('result type')

export interface TypedResult {
  readonly [RESULT_TYPE]: object
}

/** Standard `resultType` values (2026-07-28 basic, "ResultType"). */
export const RESULT_TYPES: ReadonlySet<string> = new Set(['complete', 'input_required'])

interface ResultType {
  readonly name: string
  check?(call: object): void
}

export const resultTypeOf = (value: unknown): ResultType | undefined =>
  typeof value === 'object' && value !== null ? (value as { [RESULT_TYPE]?: ResultType })[RESULT_TYPE] : undefined

export const isTyped = (value: unknown): value is object => resultTypeOf(value) !== undefined
