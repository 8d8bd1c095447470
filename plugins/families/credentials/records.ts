// Encrypted records in the grant store, under digests of their names.
import { createCipheriv, createDecipheriv, createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { HostContext } from '../../../core/plugin.ts'
import { GRANT_KINDS, type GrantStore } from '../grant-store/index.ts'

const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const FORMAT = '1'

/** SHA-256, base64url. For random or public text. */
export const digest = (text: string): string => hash('sha256', text, 'base64url')

export const asText = (value: unknown): string => (typeof value === 'string' ? value : '')

/** A token that binds a form to what it shows. The first key signs, all verify. */
export const formToken = ([key]: readonly Buffer[], form: string): string =>
  createHmac('sha256', key as Buffer)
    .update(form)
    .digest('base64url')

export function isFormToken(keys: readonly Buffer[], form: string, given: unknown): boolean {
  const bytes = Buffer.from(asText(given))
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

export type Place = string & { readonly __place: true }

/** A pending login, which anyone can create. */
export const pendingAt = (what: string, id: string) => `${GRANT_KINDS.pending}${what}:${digest(id)}` as Place
export const grantedAt = (what: string, id: string) => `${GRANT_KINDS.granted}${what}:${digest(id)}` as Place

type Sealer = ReturnType<typeof createSealer>

/** Encrypts JSON, bound to `place`. The first key encrypts, all decrypt. */
export function createSealer(keys: readonly Buffer[]) {
  const [first] = keys
  if (!first) throw new Error('there is no encryption key')

  function openWith(key: Buffer, place: string, bytes: Buffer): string | undefined {
    try {
      const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
      decipher.setAAD(Buffer.from(place))
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
      return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]).toString()
    } catch {
      return undefined
    }
  }

  return {
    seal(place: string, value: unknown): string {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv(ALGORITHM, first, nonce, { authTagLength: TAG_BYTES })
      cipher.setAAD(Buffer.from(place))
      const sealed = Buffer.concat([nonce, cipher.update(JSON.stringify(value)), cipher.final(), cipher.getAuthTag()])
      return `${FORMAT}${sealed.toString('base64url')}`
    },
    open(place: string, sealed: string): unknown {
      if (!sealed.startsWith(FORMAT)) return undefined
      const bytes = Buffer.from(sealed.slice(FORMAT.length), 'base64url')
      if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined
      for (const key of keys) {
        const text = openWith(key, place, bytes)
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

const pause = () => new Promise<void>(resolve => void setTimeout(resolve, LOCK_PAUSE).unref())

/** `failed` replaces an error of the store. */
export function createRecords(store: GrantStore, sealer: Sealer, failed = (error: unknown): unknown => error) {
  const asked = <Value>(answer: Promise<Value>): Promise<Value> =>
    answer.catch((error: unknown) => {
      throw failed(error)
    })
  const opened = <Value>(place: Place, sealed: string | undefined) =>
    sealed === undefined ? undefined : (sealer.open(place, sealed) as Value | undefined)

  return {
    read: async <Value>(place: Place): Promise<Value | undefined> => opened(place, await asked(store.get(place))),
    write: (place: Place, value: unknown, ttl: number) => asked(store.set(place, sealer.seal(place, value), ttl)),
    add: (place: Place, value: unknown, ttl: number) => asked(store.add(place, sealer.seal(place, value), ttl)),
    take: async <Value>(place: Place): Promise<Value | undefined> => opened(place, await asked(store.take(place))),
    async update<Value>(place: Place, ttl: number, change: (value: Value) => Value | undefined) {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const sealed = await asked(store.get(place))
        const value = opened<Value>(place, sealed)
        if (sealed === undefined || value === undefined) return undefined
        const next = change(value)
        if (next === undefined) return undefined
        if (await asked(store.replace(place, sealed, sealer.seal(place, next), ttl))) return next
      }
      throw new Error('a record changes too often to be changed')
    },
    /** Runs one task at a time on all nodes. Undefined if others hold the lock for `ttl` milliseconds, after which it expires. */
    async locked<Value>(place: Place, ttl: number, run: () => Promise<Value>): Promise<{ value: Value } | undefined> {
      const mark = sealer.seal(place, randomBytes(16).toString('base64url'))
      const end = performance.now() + ttl
      while (!(await asked(store.add(place, mark, ttl)))) {
        if (performance.now() > end) return undefined
        await pause()
      }
      try {
        return { value: await run() }
      } finally {
        // The lock can have expired, and be that of another node.
        await asked(store.replace(place, mark, '', 0))
      }
    },
    /** Deletes a record whose value fits, and returns whether it did. */
    async remove<Value>(place: Place, fits: (value: Value) => boolean): Promise<boolean> {
      const sealed = await asked(store.get(place))
      const value = opened<Value>(place, sealed)
      return sealed !== undefined && value !== undefined && fits(value) && asked(store.replace(place, sealed, '', 0))
    },
    delete: (...places: readonly Place[]) => asked(store.delete(...places)),
    join: (set: Place, member: string, ttl: number, most: number) => asked(store.join(set, member, ttl, most)),
    leave: (set: Place, member: string) => asked(store.leave(set, member)),
    members: (set: Place) => asked(store.members(set)),
  }
}
