// What was thrown, in words, whatever it is: nothing here throws, for it is called where nobody is left to catch. A tool
// may throw a proxy, an object without a prototype, or an error whose message is a getter that throws.

/** Longest text of one error, characters. */
const MAX_MESSAGE = 2_000
const MAX_STACK = 8_000

export interface ThrownText {
  readonly type?: string
  readonly message: string
  /** The message of what caused it, where that is not in its own. */
  readonly cause?: string
  readonly stack?: string
}

/** The value of `read`; undefined where it throws. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

const shortened = (text: string, most: number) => (text.length > most ? `${text.slice(0, most)}…` : text)

const textAt = (thrown: unknown, key: 'name' | 'message' | 'stack', most: number): string | undefined => {
  const value = attempt(() => (thrown as Record<string, unknown>)[key])
  return typeof value === 'string' ? shortened(value, most) : undefined
}

/** True for an Error; a proxy that throws when it is looked at is none. */
export const isError = (thrown: unknown): thrown is Error => attempt(() => thrown instanceof Error) ?? false

/** True for an error that carries this mark. */
export const isBranded = (thrown: unknown, brand: symbol): boolean =>
  attempt(() => thrown instanceof Error && brand in thrown) ?? false

/** The text of anything thrown, whole: a start-up message may list many faults. */
export function errorText(thrown: unknown): string {
  if (isError(thrown)) return textAt(thrown, 'message', Infinity) ?? 'an error whose message cannot be read'
  return attempt(() => String(thrown)) ?? 'a value that cannot be written as text'
}

function causeOf(error: Error, message: string): string | undefined {
  const cause = attempt(() => error.cause)
  if (cause === undefined) return undefined
  const text = shortened(errorText(cause), MAX_MESSAGE)
  return message.includes(text) ? undefined : text
}

/** What a log line says of anything thrown. */
export function describeThrown(thrown: unknown, withStack = false): ThrownText {
  const message = shortened(errorText(thrown), MAX_MESSAGE)
  if (!isError(thrown)) return { message }
  const type = textAt(thrown, 'name', 200)
  const cause = causeOf(thrown, message)
  const stack = withStack ? textAt(thrown, 'stack', MAX_STACK) : undefined
  return {
    ...(type !== undefined && { type }),
    message,
    ...(cause !== undefined && { cause }),
    ...(stack !== undefined && { stack }),
  }
}

/** Where an error was made: the first line of its stack that is not of Node itself. */
export function originOf(thrown: unknown): string | undefined {
  if (!isError(thrown)) return undefined
  const lines = (textAt(thrown, 'stack', MAX_STACK) ?? '').split('\n')
  return lines.find(line => /^\s+at /.test(line) && !line.includes('node:'))?.trim()
}
