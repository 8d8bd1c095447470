// Puts the lines of the log on stderr without ever waiting for whoever reads it: what nobody reads is kept up to a bound,
// then dropped and counted. Node queues what a pipe or socket does not take; a file or terminal takes it at once.

/** Bytes that may wait for a reader of stderr. */
export const MAX_WAITING_LOG = 1024 * 1024

/** Those that have been given a listener: all hosts of a process write to one. */
const heard = new WeakSet<object>()

export type LogOutput = NodeJS.WritableStream & Pick<NodeJS.WriteStream, 'writableLength'>

export interface LogWriter {
  write(line: string): void
  /** Resolves once everything is on its way, or after `patience` milliseconds. */
  flush(patience: number): Promise<void>
}

/** `dropped`: the line that tells how many were. `render` makes of a line what is written. */
export function createLogWriter(
  stderr: LogOutput,
  dropped: (lines: number) => string,
  render: (line: string) => string = line => line,
): LogWriter {
  let lost = 0
  // A reader that is gone ends nothing but the log.
  if (!heard.has(stderr)) stderr.on('error', () => undefined)
  heard.add(stderr)

  function write(line: string) {
    // One line alone may be larger than the bound.
    if (stderr.writableLength > 0 && stderr.writableLength + line.length > MAX_WAITING_LOG) {
      lost++
      return
    }
    if (lost > 0) {
      const lines = lost
      lost = 0
      stderr.write(render(dropped(lines)))
    }
    stderr.write(render(line))
  }

  return {
    write,
    async flush(patience) {
      const end = performance.now() + patience
      while (stderr.writableLength > 0 && performance.now() < end) await new Promise(resolve => setTimeout(resolve, 10))
    },
  }
}
