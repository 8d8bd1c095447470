// Two ends of a line within one process: what one sends, the other is given, in order and never before `send` returned.

export interface End {
  send(message: string): void
  /** Closes both ends. What was sent before still arrives. */
  close(): void
  onmessage?: ((message: string) => void) | undefined
  onclose?: (() => void) | undefined
}

export function createPair(): [End, End] {
  let open = true
  function close() {
    if (!open) return
    open = false
    for (const end of [one, other]) queueMicrotask(() => end.onclose?.())
  }
  const endOf = (peer: () => End): End => ({
    send(message) {
      if (open) queueMicrotask(() => peer().onmessage?.(message))
    },
    close,
  })
  const one: End = endOf(() => other)
  const other: End = endOf(() => one)
  return [one, other]
}
