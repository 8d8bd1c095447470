// Splits a byte stream into lines, with a size limit.

const NEWLINE = 0x0a
const RETURN = 0x0d

/**
 * Returns a function that takes chunks. `onLine` receives each line without its end; `onTooLong` is called once per line
 * above `max` bytes.
 */
export function createLineSplitter(
  max: number,
  { onLine, onTooLong }: { readonly onLine: (line: Buffer) => void; readonly onTooLong: () => void },
): (chunk: Buffer) => void {
  let parts: Buffer[] = []
  let size = 0
  let isSkipped = false

  function add(part: Buffer): void {
    if (isSkipped || part.length === 0) return
    size += part.length
    if (size <= max) {
      parts.push(part)
      return
    }
    isSkipped = true
    parts = []
    onTooLong()
  }

  function end(): void {
    const [first] = parts
    const line = parts.length === 1 && first ? first : Buffer.concat(parts)
    const wasSkipped = isSkipped
    parts = []
    size = 0
    isSkipped = false
    if (!wasSkipped) onLine(line.at(-1) === RETURN ? line.subarray(0, -1) : line)
  }

  return chunk => {
    let start = 0
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, start)) {
      add(chunk.subarray(start, at))
      start = at + 1
      end()
    }
    if (start < chunk.length) add(chunk.subarray(start))
  }
}
