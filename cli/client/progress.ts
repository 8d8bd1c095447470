// How far a long call is: one line that is written over on a terminal, a line each elsewhere. On stderr.
import { printable } from '../../client/text.ts'
import type { CommandOutput } from '../context.ts'

export interface Progress {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

export function describeProgress({ progress, total, message }: Progress): string {
  const part = total === undefined ? String(progress) : `${progress}/${total}`
  const percent = total === undefined || total <= 0 ? '' : ` (${Math.floor((progress / total) * 100)} %)`
  return printable([`${part}${percent}`, message].filter(Boolean).join('  '), 200)
}

export interface ProgressLine {
  show(progress: Progress | string): void
  /** Takes the line away. */
  clear(): void
}

export function createProgressLine(stream: CommandOutput): ProgressLine {
  let shown = false
  return {
    show(progress) {
      const text = typeof progress === 'string' ? printable(progress, 200) : describeProgress(progress)
      if (!stream.isTTY) return void stream.write(`${text}\n`)
      stream.write(`\r\u001b[K${text.slice(0, Math.max(1, (stream.columns || 80) - 1))}`)
      shown = true
    },
    clear() {
      if (shown) stream.write('\r\u001b[K')
      shown = false
    },
  }
}
