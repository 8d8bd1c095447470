// How many lines of one kind the log takes: what a stranger can cause a thousand times a second is told a few times, and
// then by its number. A kind is a message: our messages are fixed texts, and what differs is in the fields.

/** Lines of one kind in one span. */
export const MAX_LINES = 30
/** The span, milliseconds. */
export const LINE_SPAN = 10_000
/** Kinds that are told apart in one span; all others are one. */
const MAX_KINDS = 500

export interface LogBudget {
  /** False: the line is left out, and counted. */
  admits(kind: string): boolean
  /** Tells now what was left out. */
  settle(): void
}

/** `tell` hears once a span of each kind of which lines were left out. */
export function createLogBudget(tell: (kind: string, lines: number) => void): LogBudget {
  const written = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined

  function settle() {
    clearTimeout(timer)
    timer = undefined
    const counts = [...written]
    written.clear()
    for (const [kind, lines] of counts) if (lines > MAX_LINES) tell(kind, lines - MAX_LINES)
  }

  return {
    admits(message) {
      const kind = written.has(message) || written.size < MAX_KINDS ? message : 'lines of other kinds'
      const lines = (written.get(kind) ?? 0) + 1
      written.set(kind, lines)
      timer ??= setTimeout(settle, LINE_SPAN).unref()
      return lines <= MAX_LINES
    },
    settle,
  }
}
