// Keeps the cookies of load balancers, in memory and for one connection. Cookie attributes are ignored.

const MAX_COOKIES = 50
const MAX_COOKIE = 4_096

export interface Cookies {
  keep(setCookies: readonly string[]): void
  /** The `Cookie` header; undefined without cookies. */
  readonly header: string | undefined
}

export function createCookies(): Cookies {
  const kept = new Map<string, string>()
  return {
    keep(setCookies) {
      for (const cookie of setCookies) {
        const [, name, value] = /^\s*([^=;\s]+)=([^;]*)/.exec(cookie) ?? []
        if (name === undefined || value === undefined || cookie.length > MAX_COOKIE) continue
        kept.delete(name)
        const isOver = /;\s*max-age=(?:0|-\d+)\b/i.test(cookie)
        if (!isOver && kept.size < MAX_COOKIES) kept.set(name, value.trim())
      }
    },
    get header() {
      return kept.size === 0 ? undefined : [...kept].map(([name, value]) => `${name}=${value}`).join('; ')
    },
  }
}
