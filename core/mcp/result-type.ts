// What kind of result it is, where it is not the protocol's complete one: questions to the client, or an extension's own.
import type { Logger } from '../kernel/log.ts'
import type { Call } from './call.ts'
import { RESULT_TYPE } from './typed-result.ts'

/** The values of `resultType` that the protocol itself has (2026-07-28 basic, "ResultType"). */
export const RESULT_TYPES: ReadonlySet<string> = new Set(['complete', 'input_required'])

/** A result's type, where it is not complete. */
interface ResultType {
  readonly name: string
  /** Throws where a call must not be answered with it. */
  readonly check?: (call: Call) => void
}

/** What a result that is not complete is; undefined for everything else. */
export const resultTypeOf = (value: unknown): ResultType | undefined =>
  typeof value === 'object' && value !== null ? (value as { [RESULT_TYPE]?: ResultType })[RESULT_TYPE] : undefined

/** True for a result that travels as it is: no handler's value, to be made one. */
export const isTyped = (value: unknown): value is object => resultTypeOf(value) !== undefined

/** Names that are told of. */
const MAX_TOLD = 100

/** Tells authors, once for each, that a type which a result says by hand is not its type: it goes out as complete. */
export function createHandmadeWarning(log: Logger) {
  const told = new Set<string>()
  return ({ method, offer }: Call, result: { readonly resultType?: unknown }): void => {
    const { resultType } = result
    if (resultType === undefined || resultType === 'complete' || resultTypeOf(result)) return
    const name = `${method} ${resultType}`
    if (told.size === MAX_TOLD || told.has(name)) return
    told.add(name)
    const why = 'a result says a resultType by hand and goes out as "complete": make it with result() of host.extension'
    log.warn({ method, resultType, route: offer.route.path }, why)
  }
}
