// The terminal as one picture that is drawn over and over, and its keys. What was there before comes back when it is closed.
import type { Size } from './frame.ts'

/** Another screen than the one of the shell, no cursor, no wrapped lines; and all of it back. */
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l'
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l'
const HOME = '\x1b[H'
const END_OF_LINE = '\x1b[K'
const REST = '\x1b[J'

const CTRL_C = '\x03'
const CTRL_D = '\x04'

/** As far as process.stdin and process.stdout are needed. */
export interface TerminalIn extends NodeJS.ReadableStream {
  readonly isTTY?: boolean
  setRawMode?(mode: boolean): unknown
}

export interface TerminalOut extends NodeJS.WritableStream {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
  readonly writableNeedDrain?: boolean
}

export interface Screen {
  size(): Size
  draw(lines: readonly string[]): void
  /** Gives the terminal back; does nothing the second time. */
  close(): void
}

export interface ScreenEvents {
  /** Ctrl-C and Ctrl-D are `q`. */
  pressed(key: string): void
  resized(): void
  /** Nobody reads what is drawn any more. */
  gone(): void
}

export function openScreen(input: TerminalIn, output: TerminalOut, { pressed, resized, gone }: ScreenEvents): Screen {
  const hasKeys = input.isTTY === true
  const read = (text: string | Buffer) => {
    for (const key of String(text)) pressed(key === CTRL_C || key === CTRL_D ? 'q' : key.toLowerCase())
  }
  let isOpen = true

  function close() {
    if (!isOpen) return
    isOpen = false
    process.off('exit', close)
    output.off('resize', resized)
    if (hasKeys) {
      input.off('data', read)
      input.setRawMode?.(false)
      input.pause()
    }
    output.write(LEAVE)
  }

  output.on('error', gone)
  output.on('resize', resized)
  // What nobody caught, and whoever ends the process, too.
  process.once('exit', close)
  if (hasKeys) {
    input.setRawMode?.(true)
    input.on('data', read)
    input.resume()
  }
  output.write(ENTER)
  return {
    size: () => ({ columns: output.columns || 80, rows: output.rows || 24 }),
    draw(lines) {
      // A terminal that is slow to read gets the next picture.
      if (!isOpen || output.writableNeedDrain === true) return
      output.write(`${HOME}${lines.map(line => `${line}${END_OF_LINE}`).join('\r\n')}${REST}`)
    },
    close,
  }
}
