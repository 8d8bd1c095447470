// A connection within one process. Messages are delivered in order, after `send` has returned.

export interface End {
  send(message: string): void
  /** Closes both ends. Messages that were sent before are still delivered. */
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
  const createEnd = (peer: () => End): End => ({
    send(message) {
      if (open) queueMicrotask(() => peer().onmessage?.(message))
    },
    close,
  })
  const one: End = createEnd(() => other)
  const other: End = createEnd(() => one)
  return [one, other]
}
