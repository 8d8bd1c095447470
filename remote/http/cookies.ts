// Keeps the cookies of load balancers, in memory and for one connection. Cookie attributes are ignored.

const MAX_COOKIES = 50
const MAX_COOKIE = 4_096

export function createCookies() {
  const kept = new Map<string, string>()
  return {
    keep(setCookies: readonly string[]): void {
      for (const cookie of setCookies) {
        const [, name, value] = /^\s*([^=;\s]+)=([^;]*)/.exec(cookie) ?? []
        if (name === undefined || value === undefined || cookie.length > MAX_COOKIE) continue
        kept.delete(name)
        const isOver = /;\s*max-age=(?:0|-\d+)\b/i.test(cookie)
        if (!isOver && kept.size < MAX_COOKIES) kept.set(name, value.trim())
      }
    },
    /** The `Cookie` header; undefined without cookies. */
    get header(): string | undefined {
      return kept.size === 0 ? undefined : [...kept].map(([name, value]) => `${name}=${value}`).join('; ')
    },
  }
}
