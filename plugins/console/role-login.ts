// Login of users with a role: they sign in at the identity provider of auth-bridge and receive a ticket for the console.
import { isLoopback } from '../../core/auth.ts'
import { HostError } from '../../core/index.ts'
import type { InternalHost, Operator } from '../../core/internal.ts'
import { type HostContext, isObject, StartError } from '../../core/plugin.ts'
import { createSealer, digest } from '../families/credentials/index.ts'
import { formatAuthority } from '../families/separate-port/index.ts'

const PATH = '/console'
/** Milliseconds. */
const TICKET_TTL = 60_000
/** SHA-256, base64url. */
const CHALLENGE = /^[\w-]{43}$/

interface Place {
  readonly role: string
  readonly host: string
  readonly port: number
  readonly allowedHosts: readonly string[]
}

const asText = (value: unknown) => (typeof value === 'string' ? value : '')

/** True for a request that is not a navigation of a whole tab, such as of a frame or an image. */
const isPartOfPage = ({ req: { headers } }: HostContext) => (headers['sec-fetch-dest'] ?? 'document') !== 'document'

export type RoleLogin = ReturnType<typeof createRoleLogin>

/**
 * A ticket is valid for the origin of one console, and for the browser that started the login: only this browser has the
 * verifier of the challenge. So no one can log another browser in, or use the ticket of another browser. A ticket is sealed
 * instead of stored, because another process can serve the console. Must be called in `setup`.
 */
export function createRoleLogin(host: InternalHost, { role, host: address, port, allowedHosts }: Place) {
  const { at, http, purpose } = host.config
  const sealer = createSealer(host.config.keys('console logins'))
  /** Used tickets until they expire. */
  const used = new Map<string, number>()
  let operator: Operator | undefined
  let openPort = port

  const findServer = () =>
    host.routes.map(route => host.services.slot('authorizationServer', route)).find(({ pages }) => pages !== undefined)

  /** The origin of the console, and those of proxies. Not every port of a name, because each port can be another program. */
  function origins(): readonly [string, ...string[]] {
    const isTls = !isLoopback(address) && http.tls !== undefined
    const names = allowedHosts.map(name => name.toLowerCase())
    return [
      `${isTls ? 'https' : 'http'}://${formatAuthority(address, openPort)}`,
      ...names.flatMap(name => [`https://${name}`, ...(isTls ? [`https://${name}:${openPort}`] : [])]),
    ]
  }

  const placeOf = (origin: string, challenge: string) => JSON.stringify(['console', origin, challenge])

  async function serve(ctx: HostContext): Promise<void> {
    const server = findServer()
    const issuer = server?.issuer()
    if (!server?.pages || !operator || issuer === undefined) throw new HostError('unavailable')
    if (isPartOfPage(ctx)) throw new HostError('forbidden', { detail: 'another page cannot load this page' })
    const { pages } = server
    const [to, challenge] = [asText(ctx.query['to']), asText(ctx.query['challenge'])]
    if (!origins().includes(to) || !CHALLENGE.test(challenge)) {
      const text = 'Open the console, and sign in from there.'
      return pages.show(ctx, { title: 'This link is not valid', text, isError: true }, 400)
    }
    const path = `${new URL(host.url(PATH)).pathname}?${new URLSearchParams({ to, challenge })}`
    const subject = await pages.identify(ctx, path)
    if (subject === undefined) return
    const roles = await pages.rolesOf(ctx)
    // The sign-in has expired; `identify` starts a new one.
    if (!roles && (await pages.identify(ctx, path)) === undefined) return
    const user = operator.pseudonymOf({ issuer, subject })
    if (!roles?.includes(role)) {
      host.log.warn({ code: 'MH3612', user }, 'Refused a user without the role of the console')
      const text = `The console requires the role “${role}”, which your account does not have.`
      const action = { label: 'Your account', href: `${new URL(issuer).pathname}/account` }
      return pages.show(ctx, { title: 'Access denied', text, isError: true, action }, 403)
    }
    const ticket = sealer.seal(placeOf(to, challenge), { user, expiresAt: host.clock.now() + TICKET_TTL })
    ctx.set('Cache-Control', 'no-store')
    ctx.set('Referrer-Policy', 'no-referrer')
    ctx.status = 303
    ctx.redirect(`${to}/#t=${ticket}`)
  }

  host.endpoint(PATH, { methods: { GET: serve } })
  host.onReady(() => {
    if (purpose === 'stdio' || findServer()) return
    host.report(
      new StartError('MH3611', 'a role requires auth-bridge, where operators sign in', { at: [...at, 'role'] }),
    )
  })
  host.onStart(() => {
    operator = host.operator
  })

  return {
    /** `actual`: with port 0, the port that is open. */
    opened: (actual: number) => {
      openPort = actual
    },
    /** For an unknown origin, returns a page at the console's own origin that starts the sign-in: a ticket is bound to an origin. */
    signInUrl(from: readonly string[]): string {
      const all = origins()
      const to = from.find(origin => all.includes(origin))
      return to === undefined ? `${all[0]}/#sign-in` : `${host.url(PATH)}?${new URLSearchParams({ to })}`
    },
    /** The user of a ticket, once. */
    redeem(ticket: string, verifier: string, from: readonly string[]): string | undefined {
      const now = host.clock.now()
      for (const [key, expiresAt] of used) if (expiresAt <= now) used.delete(key)
      const challenge = digest(verifier)
      const to = origins().filter(origin => from.includes(origin))
      const found = to.map(origin => sealer.open(placeOf(origin, challenge), ticket)).find(isObject)
      const { user, expiresAt } = found ?? {}
      const key = digest(ticket)
      if (typeof user !== 'string' || typeof expiresAt !== 'number' || expiresAt <= now || used.has(key))
        return undefined
      used.set(key, expiresAt)
      return user
    },
  }
}
