// Limits of what is stored in the file.
export interface StoreBounds {
  /** Bytes of the file. */
  readonly maxSize: number
}

/** Shares of `maxSize`: all tasks, those of a holder. */
export const SHARE = { tasks: 0.2, tasksOfHolder: 0.05 }
