// Whether a request shows the token that may read the metrics.
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

const digest = (text: string) => createHash('sha256').update(text).digest()

/** `Authorization: Bearer <token>`, compared in a time that tells nothing of it. */
export function createTokenCheck(token: string): (headers: IncomingHttpHeaders) => boolean {
  const wanted = digest(token)
  return ({ authorization = '' }) => {
    const [, given = ''] = /^bearer +(.+)$/i.exec(authorization) ?? []
    return timingSafeEqual(digest(given), wanted)
  }
}
