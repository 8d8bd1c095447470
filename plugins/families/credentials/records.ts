// Encrypted records in the grant store, under digests of their names.
import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { decryptText, encryptText } from '../../../core/internal.ts'
import type { HostContext } from '../../../core/plugin.ts'
import { GRANT_PREFIXES, type GrantStore } from '../grant-store/index.ts'

const FORMAT = '1'

/** SHA-256, base64url. For random or public text. */
export const digest = (text: string): string => hash('sha256', text, 'base64url')

export const asText = (value: unknown): string => (typeof value === 'string' ? value : '')

/** A token that binds a form to what it shows. The first key signs, all verify. */
export const formToken = ([key]: readonly Buffer[], form: string): string =>
  createHmac('sha256', key as Buffer)
    .update(form)
    .digest('base64url')

export function isFormToken(keys: readonly Buffer[], form: string, token: unknown): boolean {
  const bytes = Buffer.from(asText(token))
  return keys.some(key => {
    const expected = Buffer.from(formToken([key], form))
    return bytes.length === expected.length && timingSafeEqual(bytes, expected)
  })
}

/** Redirects a browser to a URL with secrets. */
export function redirectTo(ctx: HostContext, url: string): void {
  ctx.set('Cache-Control', 'no-store')
  ctx.set('Referrer-Policy', 'no-referrer')
  ctx.status = 303
  ctx.redirect(url)
}

export type RecordKey = string & { readonly __place: true }

/** A pending login, which anyone can create. */
export const pendingKey = (kind: string, id: string) => `${GRANT_PREFIXES.pending}${kind}:${digest(id)}` as RecordKey
export const grantedKey = (kind: string, id: string) => `${GRANT_PREFIXES.granted}${kind}:${digest(id)}` as RecordKey

type Sealer = ReturnType<typeof createSealer>

/** Encrypts JSON, bound to `recordKey`. The first key encrypts, all decrypt. */
export function createSealer(keys: readonly Buffer[]) {
  const [first] = keys
  if (!first) throw new Error('there is no encryption key')
  return {
    seal: (recordKey: string, value: unknown): string =>
      `${FORMAT}${encryptText(first, recordKey, JSON.stringify(value)).toString('base64url')}`,
    open(recordKey: string, sealed: string): unknown {
      if (!sealed.startsWith(FORMAT)) return undefined
      const bytes = Buffer.from(sealed.slice(FORMAT.length), 'base64url')
      for (const key of keys) {
        const text = decryptText(key, recordKey, bytes)
        if (text !== undefined) return JSON.parse(text)
      }
      return undefined
    },
  }
}

export type Records = ReturnType<typeof createRecords>

const MAX_ATTEMPTS = 20
/** Milliseconds between attempts to get a lock. */
const LOCK_PAUSE = 100

/** `mapError` replaces an error of the store. */
export function createRecords(store: GrantStore, sealer: Sealer, mapError = (error: unknown): unknown => error) {
  const mapErrors = <Value>(result: Promise<Value>): Promise<Value> =>
    result.catch((error: unknown) => {
      throw mapError(error)
    })
  const decrypt = <Value>(key: RecordKey, sealed: string | undefined) =>
    sealed === undefined ? undefined : (sealer.open(key, sealed) as Value | undefined)

  return {
    read: async <Value>(key: RecordKey): Promise<Value | undefined> => decrypt(key, await mapErrors(store.get(key))),
    write: (key: RecordKey, value: unknown, ttl: number) => mapErrors(store.set(key, sealer.seal(key, value), ttl)),
    add: (key: RecordKey, value: unknown, ttl: number) => mapErrors(store.add(key, sealer.seal(key, value), ttl)),
    take: async <Value>(key: RecordKey): Promise<Value | undefined> => decrypt(key, await mapErrors(store.take(key))),
    async update<Value>(key: RecordKey, ttl: number, change: (value: Value) => Value | undefined) {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const sealed = await mapErrors(store.get(key))
        const value = decrypt<Value>(key, sealed)
        if (sealed === undefined || value === undefined) return undefined
        const next = change(value)
        if (next === undefined) return undefined
        if (await mapErrors(store.replace(key, sealed, sealer.seal(key, next), ttl))) return next
      }
      throw new Error('a record changes too often to be changed')
    },
    /** Runs one task at a time on all nodes. Undefined if others hold the lock for `ttl` milliseconds, after which it expires. */
    async withLock<Value>(
      key: RecordKey,
      ttl: number,
      run: () => Promise<Value>,
    ): Promise<{ value: Value } | undefined> {
      const lockValue = sealer.seal(key, randomBytes(16).toString('base64url'))
      const end = performance.now() + ttl
      while (!(await mapErrors(store.add(key, lockValue, ttl)))) {
        if (performance.now() > end) return undefined
        await new Promise<void>(resolve => void setTimeout(resolve, LOCK_PAUSE).unref())
      }
      try {
        return { value: await run() }
      } finally {
        // The lock may have expired, and another node may hold it.
        await mapErrors(store.replace(key, lockValue, '', 0))
      }
    },
    /** Deletes a record whose value fits, and returns whether it did. */
    async remove<Value>(key: RecordKey, matches: (value: Value) => boolean): Promise<boolean> {
      const sealed = await mapErrors(store.get(key))
      const value = decrypt<Value>(key, sealed)
      return value !== undefined && matches(value) && mapErrors(store.replace(key, sealed ?? '', '', 0))
    },
    delete: (...places: readonly RecordKey[]) => mapErrors(store.delete(...places)),
    join: (set: RecordKey, member: string, ttl: number, most: number) => mapErrors(store.join(set, member, ttl, most)),
    leave: (set: RecordKey, member: string) => mapErrors(store.leave(set, member)),
    members: (set: RecordKey) => mapErrors(store.members(set)),
  }
}
