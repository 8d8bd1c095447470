// Reads a response part by part.

/** Splits the text at the separator. */
export async function* partsOf({ body }: Response, separator: string): AsyncGenerator<string> {
  if (!body) return
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let pending = ''
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    const parts = (pending + chunk.value).split(separator)
    pending = parts.pop() ?? ''
    yield* parts
  }
  if (pending !== '') yield pending
}
