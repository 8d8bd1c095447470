// Reads the body of an answer up to a limit, and lets go of the rest.

export interface BoundedBody {
  readonly bytes: Uint8Array
  /** There was more than the limit. */
  readonly cut: boolean
}

/** At most `limit` bytes, counted after decompression. Rejects where the connection breaks. */
export async function readBody(response: Response, limit: number): Promise<BoundedBody> {
  const chunks: Uint8Array[] = []
  let size = 0
  let cut = false
  const reader = response.body?.getReader()
  while (reader && !cut) {
    const { done, value } = await reader.read()
    if (done) break
    cut = size + value.byteLength > limit
    const kept = cut ? value.subarray(0, limit - size) : value
    chunks.push(kept)
    size += kept.byteLength
  }
  if (cut) await reader?.cancel().catch(() => {})
  const bytes = new Uint8Array(size)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.byteLength
  }
  return { bytes, cut }
}
