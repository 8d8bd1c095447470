// The bytes of a body as they come. Its sender chooses how: each of a million chunks of one byte would be a Buffer of its
// own, at sixty times its bytes, so small ones are copied together.

/** Chunks of at least so many bytes are kept as they are. */
const LARGE_CHUNK = 4_096

export class Gathered {
  readonly #parts: Buffer[] = []
  /** Small chunks that came after the last part. */
  #small: Buffer | undefined
  #used = 0
  size = 0

  add(chunk: Buffer): void {
    this.size += chunk.length
    // Most bodies are one chunk, which costs nothing.
    if (this.size === chunk.length || chunk.length >= LARGE_CHUNK) {
      this.#seal()
      this.#parts.push(chunk)
      return
    }
    if (this.#small && this.#used + chunk.length > LARGE_CHUNK) this.#seal()
    this.#small ??= Buffer.allocUnsafeSlow(LARGE_CHUNK)
    this.#used += chunk.copy(this.#small, this.#used)
  }

  #seal() {
    // What is hardly used would be held for a few bytes.
    if (this.#small) this.#parts.push(Buffer.from(this.#small.subarray(0, this.#used)))
    this.#small = undefined
    this.#used = 0
  }

  /** All of it, in one piece; what was gathered is let go. */
  take(): Buffer {
    this.#seal()
    const [first] = this.#parts
    const whole = this.#parts.length === 1 && first ? first : Buffer.concat(this.#parts)
    this.#parts.length = 0
    return whole
  }
}
