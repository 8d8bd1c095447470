// Logins of users at APIs: single-use links, pages of this host, and the tokens of each user, encrypted in the grant store.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { AuthorizationServer, UserPage, UserPages } from '../../../core/auth.ts'
import { type CallContext, HostError, ToolError } from '../../../core/index.ts'
import type { InternalHost, Services } from '../../../core/internal.ts'
import { type HostContext, StartError } from '../../../core/plugin.ts'
import { callOf, contextCancellation } from '../../../core/transport.ts'
import { LoginRequired } from './login-round.ts'
import { createRecords, createSealer, digest, grantedAt, pendingAt, type Records } from './records.ts'
import type { UpstreamAuth } from './schema.ts'
import { readKey } from './secret.ts'
import { callerTokens, type TokenSource } from './tokens.ts'

type LoginAuth = Extract<UpstreamAuth, { readonly kind: 'login' }>
type LoginClient = Awaited<ReturnType<Services['createLoginClient']>>
type Options = Parameters<Services['createLoginClient']>[0]
type TokenCache = Options['tokenCache']
type FlowRecord = Parameters<Options['flowStore']['save']>[1]
type Tokens = Parameters<TokenCache['storeTokens']>[0]

interface Owner {
  readonly issuer: string
  readonly subject: string
}

/** A login of one caller, which only this caller can start and finish. */
interface Link {
  readonly id: string
  readonly apiUrl: string
  readonly owner: Owner
}

interface Flow extends Link {
  readonly record: FlowRecord
}

/** Milliseconds. */
const LINK_TTL = 600_000
const TOKENS_TTL = 90 * 86_400_000
const LOCK_TTL = 30_000
const LOCK_PAUSE = 100
const MAX_WAIT = 120_000
/** Interval of checks for logins that another node finished. */
const WAIT_PAUSE = 1_000
const MAX_CLIENTS = 1_000
const MAX_QUERY = 6_000
/** The query parameters of the link page and of the callback. */
const PARAMETERS = ['link', 'confirm', 'state', 'code', 'iss', 'error', 'error_description']

const linkAt = (link: string) => pendingAt('api login link', link)
const flowAt = (state: string) => pendingAt('api login', state)
const tokensAt = (key: string) => grantedAt('api tokens', key)

const asText = (value: unknown): string => (typeof value === 'string' ? value : '')
const secretText = () => randomBytes(32).toString('base64url')

interface Access {
  readonly server: AuthorizationServer
  readonly pages: UserPages
  readonly records: Records
}

export type Logins = ReturnType<typeof createLogins>

/** Creates the logins. Must be called in `setup`. */
export function createLogins(host: InternalHost) {
  const { log, clock, config } = host
  const auths = new Map<string, LoginAuth>()
  const caches = new Map<string, TokenCache>()
  const clients = new LRUCache<string, Promise<LoginClient>>({ max: MAX_CLIENTS })
  /** Calls that wait for a login, by client. */
  const waiting = new Map<string, Set<() => void>>()
  const keys = config.keys('api logins')
  const confirmKeys = config.keys('api login pages')
  let access: Access | undefined

  function findAccess(): Access {
    if (access) return access
    const found = host.routes
      .map(route => ({ server: host.services.slot('authorizationServer', route), route }))
      .find(({ server }) => server.pages)
    if (!found?.server.pages) throw new HostError('unavailable', { detail: 'this host cannot identify users' })
    const store = host.services.slot('grantStore', found.route)
    access = { server: found.server, pages: found.server.pages, records: createRecords(store, createSealer(keys)) }
    return access
  }

  /** Reports why users cannot log in. */
  function check() {
    const { at, purpose } = config
    if (purpose === 'stdio') return
    const served = host.routes.find(route => host.services.slot('authorizationServer', route).pages)
    if (!served) {
      const why = "kind 'login' requires auth-bridge on the same routes, which identifies the user in the browser"
      host.report(new StartError('MH3412', why, { at }))
    } else if (host.ownKeys && host.services.slot('grantStore', served).shared) {
      const why = 'the keys that encrypt tokens of users are temporary: set `secrets`, or MCP_HOST_SECRETS'
      host.report(new StartError('MH3413', why, { at }))
    }
  }

  const keyOf = ({ id, apiUrl, owner }: Link) => digest(JSON.stringify([id, apiUrl, owner.issuer, owner.subject]))
  const pathOf = (id: string) => `/connect/${encodeURIComponent(id)}`
  const whatOf = ({ id, apiUrl }: Pick<Link, 'id' | 'apiUrl'>) => `"${id}" (${new URL(apiUrl).host})`

  async function locked<Value>(records: Records, key: string, work: () => Promise<Value>): Promise<Value> {
    const lock = grantedAt('api tokens lock', key)
    const owner = secretText()
    const end = clock.monotonic() + LOCK_TTL
    while (!(await records.add(lock, owner, LOCK_TTL))) {
      if (clock.monotonic() > end) throw new HostError('unavailable', { detail: 'another node renews the token' })
      await new Promise<void>(resolve => void clock.setTimeout(resolve, LOCK_PAUSE))
    }
    try {
      return await work()
    } finally {
      if ((await records.read(lock)) === owner) await records.delete(lock)
    }
  }

  /** All users of an API share the registration of this host. */
  function cacheOf({ id, apiUrl }: Link, auth: LoginAuth, records: Records): TokenCache {
    const name = JSON.stringify([id, apiUrl, auth.clientId, auth.issuer])
    const known = caches.get(name)
    if (known) return known
    const placeOf = (key: string) => tokensAt(JSON.stringify([name, key]))
    const shared = grantedAt('api client', name)
    const cache: TokenCache = {
      async getTokens({ key }) {
        const own = await records.read<Tokens>(placeOf(key))
        if (own) return own
        const registration = await records.read<NonNullable<Tokens['registration']>>(shared)
        return registration && { v: 1, registration }
      },
      async storeTokens(tokens, { key }) {
        await records.write(placeOf(key), tokens, TOKENS_TTL)
        if (tokens.registration) await records.write(shared, tokens.registration, TOKENS_TTL)
      },
      withLock: ({ key }, work) => locked(records, JSON.stringify([name, key]), work),
    }
    caches.set(name, cache)
    return cache
  }

  async function clientOf(link: Link): Promise<LoginClient> {
    const { id, apiUrl, owner } = link
    const auth = auths.get(id)
    if (!auth) throw new Error(`there is no login "${id}"`)
    const { clientId, issuer, scopes, resource } = auth
    const clientSecret = await readKey(auth.clientSecret, `auth of ${id}: clientSecret`)
    const key = JSON.stringify([keyOf(link), clientId, digest(clientSecret ?? ''), issuer, scopes, resource])
    const known = clients.get(key)
    if (known) return known
    const { records } = findAccess()
    const made = host.services.createLoginClient({
      ...(clientId !== undefined && { clientId }),
      ...(clientSecret !== undefined && { clientSecret }),
      ...(scopes && { scopes }),
      apiUrl,
      issuer,
      resource,
      redirectUri: `${host.url(pathOf(id))}/callback`,
      dynamicClientRegistration: { clientName: config.server.name, applicationType: 'web' },
      profile: JSON.stringify([owner.issuer, owner.subject]),
      tokenCache: cacheOf(link, auth, records),
      flowStore: {
        save: (state, record) => records.write(flowAt(state), { ...link, record } satisfies Flow, LINK_TTL),
        take: async state => (await records.take<Flow>(flowAt(state)))?.record,
      },
    })
    made.catch(() => clients.delete(key))
    clients.set(key, made)
    return made
  }

  function ownerOf(ctx: CallContext, what: string): Owner {
    const { issuer, subject } = callOf(ctx)?.user ?? {}
    if (issuer !== undefined && subject !== undefined && host.routes.length > 0) {
      if (issuer === findAccess().server.issuer()) return { issuer, subject }
    }
    throw new ToolError(`${what} requires a user who signed in at this host.`)
  }

  async function createUrl(link: Link): Promise<string> {
    const name = secretText()
    await findAccess().records.write(linkAt(name), link, LINK_TTL)
    return `${host.url(pathOf(link.id))}?link=${name}`
  }

  /** Sleeps until a login of the same user on this node, or `time` has passed. */
  function sleep(key: string, time: number): Promise<void> {
    return new Promise(resolve => {
      const wakes = waiting.get(key) ?? new Set()
      waiting.set(key, wakes)
      const wake = () => {
        clock.clear(timer)
        wakes.delete(wake)
        if (wakes.size === 0) waiting.delete(key)
        resolve()
      }
      const timer = clock.setTimeout(wake, time).unref()
      wakes.add(wake)
    })
  }

  async function wait(link: Link, ctx: CallContext): Promise<void> {
    const client = await clientOf(link)
    const end = clock.monotonic() + MAX_WAIT
    while ((await client.token()) === undefined) {
      if (contextCancellation(ctx).aborted || clock.monotonic() > end) {
        throw new ToolError(`The login at ${whatOf(link)} is not finished. Finish it, then call the tool again.`)
      }
      await sleep(keyOf(link), WAIT_PAUSE)
    }
  }

  /** Returns the token of the caller. Throws a LoginRequired error, or a ToolError without secrets. */
  async function tokenOf(link: Link, refused: string | undefined): Promise<string> {
    let token: string | undefined
    try {
      const client = await clientOf(link)
      token = await (refused === undefined ? client.token() : client.renew(refused))
    } catch (err) {
      log.warn({ code: 'MH3453', err, login: link.id }, 'cannot get the token of a user for an API')
      throw new ToolError(`The host cannot get a token for ${whatOf(link)} now. Try again later.`)
    }
    if (token !== undefined) return token
    throw new LoginRequired(whatOf(link), { createUrl: () => createUrl(link), wait: ctx => wait(link, ctx) })
  }

  const show = (ctx: HostContext, title: string, text: string, more: Partial<UserPage> = {}, status = 400) =>
    findAccess().pages.show(ctx, { title, text, isError: true, ...more }, status)

  const showExpired = (ctx: HostContext) =>
    show(ctx, 'This login has expired', 'The link was used before, or is too old. Call the tool again for a new one.')

  /** True if the browser's user is the caller. Otherwise a page is sent as the response. */
  async function isOwner(ctx: HostContext, { id, owner }: Link, path: string): Promise<boolean> {
    const { pages, server } = findAccess()
    // Only the parameters of these pages: the path is stored until the user has signed in.
    const query = new URLSearchParams()
    for (const name of PARAMETERS) if (name in ctx.query) query.set(name, asText(ctx.query[name]))
    const subject = await pages.identify(ctx, `${new URL(host.url(path)).pathname}?${query}`)
    if (subject === undefined) return false
    if (subject === owner.subject && server.issuer() === owner.issuer) return true
    log.warn({ code: 'MH3454', login: id, subject, owner: owner.subject }, 'refused a login that another user started')
    const text =
      'You are signed in here as another user. Sign out, and open the link again. If you did not request it, close this page.'
    const action = { label: 'Account', href: `${server.issuer()}/account` }
    await show(ctx, 'This login belongs to another user', text, { action }, 403)
    return false
  }

  async function showFailure(ctx: HostContext, { id }: Link, err: unknown) {
    log.warn({ code: 'MH3455', err, login: id }, 'a login of a user at an API failed')
    await show(
      ctx,
      'The login failed',
      'Call the tool again for a new link. See the log of this host for the reason.',
      {},
      502,
    )
  }

  const confirmationOf = (key: Buffer, name: string) => createHmac('sha256', key).update(name).digest('base64url')

  function isConfirmed(name: string, given: string): boolean {
    return confirmKeys.some(key => {
      const expected = Buffer.from(confirmationOf(key, name))
      const bytes = Buffer.from(given)
      return bytes.length === expected.length && timingSafeEqual(bytes, expected)
    })
  }

  async function showLink(ctx: HostContext, id: string): Promise<void> {
    const { records } = findAccess()
    const name = asText(ctx.query['link'])
    const link = await records.read<Link>(linkAt(name))
    if (link?.id !== id) return showExpired(ctx)
    if (!(await isOwner(ctx, link, pathOf(id)))) return
    const confirmation = asText(ctx.query['confirm'])
    if (!isConfirmed(name, confirmation)) {
      const href = `${new URL(host.url(pathOf(id))).pathname}?link=${name}&confirm=${confirmationOf(confirmKeys[0] as Buffer, name)}`
      const text = `${config.server.name} requests access to ${whatOf(link)} in your name. Continue only if you started this.`
      return show(ctx, 'Log in', text, { action: { label: 'Continue', href }, isError: false }, 200)
    }
    let url: string
    try {
      url = await (await clientOf(link)).begin()
    } catch (error) {
      return showFailure(ctx, link, error)
    }
    if (!(await records.take(linkAt(name)))) return showExpired(ctx)
    ctx.set('Cache-Control', 'no-store')
    ctx.set('Referrer-Policy', 'no-referrer')
    ctx.status = 303
    ctx.redirect(url)
  }

  async function finish(ctx: HostContext, id: string): Promise<void> {
    const { records } = findAccess()
    const place = flowAt(asText(ctx.query['state']))
    const flow = await records.read<Flow>(place)
    if (flow?.id !== id) return showExpired(ctx)
    const path = `${pathOf(id)}/callback`
    if (!(await isOwner(ctx, flow, path))) {
      if (ctx.status === 403) await records.delete(place)
      return
    }
    try {
      await (await clientOf({ id, apiUrl: flow.apiUrl, owner: flow.owner })).complete(`${host.url(path)}${ctx.search}`)
    } catch (error) {
      return showFailure(ctx, flow, error)
    }
    for (const wake of [...(waiting.get(keyOf(flow)) ?? [])]) wake()
    log.info({ code: 'MH3456', login: id, subject: flow.owner.subject }, 'a user logged in at an API')
    await show(ctx, 'You are logged in', 'Close this page, and return to your application.', { isError: false }, 200)
  }

  const page = (handle: (ctx: HostContext, id: string) => Promise<void>, id: string) => ({
    methods: {
      GET: async (ctx: HostContext) => {
        if (ctx.querystring.length > MAX_QUERY)
          throw new HostError('invalidRequest', { detail: 'the query is too long' })
        await handle(ctx, id)
      },
    },
  })

  return {
    /** Adds the pages of a login. */
    add(id: string): void {
      if (auths.size === 0) host.onReady(check)
      auths.set(id, { kind: 'login' })
      host.endpoint(pathOf(id), page(showLink, id))
      host.endpoint(`${pathOf(id)}/callback`, page(finish, id))
    },
    source(id: string, auth: LoginAuth, apiUrl: string): TokenSource {
      auths.set(id, auth)
      return callerTokens((ctx, rejected) =>
        tokenOf({ id, apiUrl, owner: ownerOf(ctx, whatOf({ id, apiUrl })) }, rejected),
      )
    },
  }
}
