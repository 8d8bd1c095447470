// How far a long log is read, for people: one line of the terminal that is written over, on stderr.
import { statSync } from 'node:fs'
import { createProgressLine } from '../client/progress.ts'
import type { CommandOutput } from '../context.ts'

/** Milliseconds between two looks; whoever is done before the first shows nothing. */
const INTERVAL = 1_000

interface Source {
  /** Of a file. */
  readonly bytesRead?: number
  readonly path?: string | Buffer
}

/** How much of a file is read; it may be none, or away. */
function partOf({ bytesRead, path }: Source): string {
  const size = path === undefined ? 0 : (statSync(path, { throwIfNoEntry: false })?.size ?? 0)
  return size > 0 && bytesRead !== undefined ? `, ${Math.min(100, Math.floor((bytesRead / size) * 100))} %` : ''
}

/** Shows it until `end`; nothing where stderr is no terminal. `lines`: how many were read until now. */
export function showReading(name: string, source: Source, lines: () => number, stderr: CommandOutput): { end(): void } {
  if (!stderr.isTTY) return { end: () => undefined }
  const line = createProgressLine(stderr)
  const timer = setInterval(
    () => line.show({ progress: lines(), message: `lines of ${name}${partOf(source)}` }),
    INTERVAL,
  )
  return {
    end() {
      clearInterval(timer)
      line.clear()
    },
  }
}
