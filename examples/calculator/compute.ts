// Computes the operations of the calculator. Returns a finite number, or throws an error for the model.
import { ToolError } from 'mcp-host'

type Compute = (numbers: readonly number[]) => number

/** Applies each of the other numbers to the first. */
const fold =
  (step: (result: number, next: number) => number): Compute =>
  ([first = Number.NaN, ...others]) =>
    others.reduce(step, first)

const add = fold((sum, next) => sum + next)

function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((one, other) => one - other)
  const middle = sorted.slice(Math.ceil(sorted.length / 2) - 1, Math.floor(sorted.length / 2) + 1)
  return add(middle) / middle.length
}

const OPERATIONS = {
  add,
  subtract: fold((left, next) => left - next),
  multiply: fold((product, next) => product * next),
  divide: fold((left, next) => left / next),
  power: fold((base, next) => base ** next),
  mean: numbers => add(numbers) / numbers.length,
  median,
  min: numbers => Math.min(...numbers),
  max: numbers => Math.max(...numbers),
} satisfies Readonly<Record<string, Compute>>

export type Operation = keyof typeof OPERATIONS

/** Throws a ToolError if the result is not finite. */
export function compute(operation: Operation, numbers: readonly number[]): number {
  const result = OPERATIONS[operation](numbers)
  if (Number.isNaN(result))
    throw new ToolError('The result is undefined, such as 0/0 or the root of a negative number.')
  if (!Number.isFinite(result)) throw new ToolError('The result is infinite, or too large for double precision.')
  return result
}
