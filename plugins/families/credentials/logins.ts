// Logins of users at APIs: single-use links, pages of this host, and the tokens of each user, encrypted in the grant store.
import { randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { type AuthorizationServer, type UserPage, type UserPages, userKey } from '../../../core/auth.ts'
import { type CallContext, HostError, ToolError } from '../../../core/index.ts'
import type { InternalHost, Services } from '../../../core/internal.ts'
import { type HostContext, isObject, StartError } from '../../../core/plugin.ts'
import { callOf, contextCancellation } from '../../../core/transport.ts'
import { LoginRequired } from './login-round.ts'
import { createLoginTokens, type LoginTokens } from './login-tokens.ts'
import { createLoginWaits } from './login-waits.ts'
import {
  asText,
  createRecords,
  createSealer,
  digest,
  formToken,
  isFormToken,
  pendingKey,
  type Records,
  redirectTo,
} from './records.ts'
import { readKey, type UpstreamAuth } from './schema.ts'
import { callerTokens, type Rejected, type TokenSource } from './tokens.ts'

type LoginAuth = Extract<UpstreamAuth, { readonly kind: 'login' }>
type LoginClient = Awaited<ReturnType<Services['createLoginClient']>>
type FlowRecord = Parameters<Parameters<Services['createLoginClient']>[0]['flowStore']['save']>[1]

/** A user who signed in at this host, the `sub` of its tokens. */
interface Owner {
  readonly issuer: string
  readonly subject: string
}

/** An API where users log in. */
interface Api {
  readonly id: string
  readonly apiUrl: string
}

/** A login of one caller, which only this caller can start and finish. */
interface Link extends Api {
  readonly owner: Owner
  /** Scopes that the API requires in addition. */
  readonly scopes?: readonly string[]
}

interface Flow extends Link {
  readonly record: FlowRecord
}

/** The logins of one plugin, for the page of all of them. */
interface Connections {
  /** The APIs where a user is logged in, by the name of their button. */
  list(owner: Owner): Promise<ReadonlyMap<string, Link>>
  disconnect(link: Link): Promise<void>
}

const CONNECTIONS = Symbol('logins of users at APIs')
const CONNECT = '/connect'

/** Milliseconds. */
const LINK_TTL = 600_000
const MAX_CLIENTS = 1_000
/** Including URLs before a reload. */
const MAX_APIS = 1_000
const MAX_QUERY = 6_000
/** Characters of scopes that an API requires in addition. */
const MAX_SCOPES = 1_000
/** The query parameters of the link page and of the callback. */
const QUERY_PARAMETERS = ['link', 'confirm', 'state', 'code', 'iss', 'error', 'error_description']

const linkKey = (link: string) => pendingKey('api login link', link)
const flowKey = (state: string) => pendingKey('api login', state)

const PROBE_TIMEOUT = 5_000
/** Statuses of an error page, where a known client gets a redirect or a page. */
const UNKNOWN_CLIENT = [400, 401, 404]

/** Returns whether the authorization server refuses the client or the scope of a login URL. */
async function probeLoginUrl(url: string): Promise<'client' | 'scope' | undefined> {
  const signal = AbortSignal.timeout(PROBE_TIMEOUT)
  const response = await fetch(url, { redirect: 'manual', signal }).catch(() => undefined)
  await response?.body?.cancel().catch(() => undefined)
  if (response && UNKNOWN_CLIENT.includes(response.status)) return 'client'
  const location = response?.headers.get('location') ?? ''
  const error = URL.canParse(location, url) ? new URL(location, url).searchParams.get('error') : undefined
  return error === 'invalid_scope' ? 'scope' : undefined
}

const isClientRefused = (error: unknown) =>
  isObject(error) && ['invalid_client', 'unauthorized_client'].includes(asText(error['code']))

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
  const apis = new LRUCache<string, Api>({ max: MAX_APIS })
  const tokens = new LRUCache<string, LoginTokens>({ max: MAX_APIS })
  const clients = new LRUCache<string, Promise<LoginClient>>({ max: MAX_CLIENTS })
  const waits = createLoginWaits(clock, log)
  const keys = config.keys('api logins')
  const confirmKeys = config.keys('api login pages')
  let access: Access | undefined

  function findAccess(): Access {
    if (access) return access
    const entries = host.routes
      .map(route => ({ server: host.services.slot('authorizationServer', route), route }))
      .find(({ server }) => server.pages)
    if (!entries?.server.pages) throw new HostError('unavailable', { detail: 'this host cannot identify users' })
    const store = host.services.slot('grantStore', entries.route)
    access = { server: entries.server, pages: entries.server.pages, records: createRecords(store, createSealer(keys)) }
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

  const apiKey = ({ id, apiUrl }: Api) => digest(JSON.stringify([id, apiUrl]))
  const loginKey = (link: Link) => digest(JSON.stringify([apiKey(link), userKey(link.owner)]))
  const waitKey = (link: Link) => JSON.stringify([loginKey(link), link.scopes])
  const pathOf = (id: string) => `${CONNECT}/${encodeURIComponent(id)}`
  const apiName = ({ id, apiUrl }: Api) => `"${id}" (${new URL(apiUrl).host})`

  function requireAuth({ id }: Api): LoginAuth {
    const auth = auths.get(id)
    if (!auth) throw new Error(`there is no login "${id}"`)
    return auth
  }

  function loginTokens(api: Api): LoginTokens {
    const { clientId, issuer } = requireAuth(api)
    const name = JSON.stringify([api.id, api.apiUrl, clientId, issuer])
    const created = tokens.get(name) ?? createLoginTokens(findAccess().records, clock, name, clientId === undefined)
    tokens.set(name, created)
    return created
  }

  async function clientFor(link: Link): Promise<LoginClient> {
    const { id, apiUrl, owner } = link
    const auth = requireAuth(link)
    const { clientId, issuer, scopes, resource } = auth
    const clientSecret = await readKey(auth.clientSecret, `auth of ${id}: clientSecret`)
    const key = JSON.stringify([loginKey(link), clientId, digest(clientSecret ?? ''), issuer, scopes, resource])
    const cached = clients.get(key)
    if (cached) return cached
    const { records } = findAccess()
    const created = host.services.createLoginClient({
      ...(clientId !== undefined && { clientId }),
      ...(clientSecret !== undefined && { clientSecret }),
      ...(scopes && { scopes }),
      apiUrl,
      issuer,
      resource,
      redirectUri: `${host.url(pathOf(id))}/callback`,
      dynamicClientRegistration: { clientName: config.server.name, applicationType: 'web' },
      profile: userKey(owner),
      tokenCache: loginTokens(link).cache,
      flowStore: {
        save: (state, record) => records.write(flowKey(state), { ...link, record } satisfies Flow, LINK_TTL),
        take: async state => (await records.take<Flow>(flowKey(state)))?.record,
      },
    })
    created.catch(() => clients.delete(key))
    clients.set(key, created)
    return created
  }

  /** The caller, if a sign-in in the browser can identify the same user. */
  function requireOwner(ctx: CallContext, name: string): Owner {
    const { issuer, subject, subjectClaim } = callOf(ctx)?.user ?? {}
    if (issuer !== undefined && subject !== undefined && subjectClaim === undefined && host.routes.length > 0) {
      if (issuer === findAccess().server.issuer()) return { issuer, subject }
    }
    throw new ToolError(`${name} requires a user who signed in at this host.`)
  }

  async function createUrl(link: Link): Promise<string> {
    const linkId = randomBytes(32).toString('base64url')
    await findAccess().records.write(linkKey(linkId), link, LINK_TTL)
    return `${host.url(pathOf(link.id))}?link=${linkId}`
  }

  async function wait(link: Link, ctx: CallContext, rejectedToken: string | undefined): Promise<void> {
    const client = await clientFor(link)
    const isDone = async () => ![undefined, rejectedToken].includes(await client.token())
    const request = { key: waitKey(link), owner: userKey(link.owner), isDone, signal: contextCancellation(ctx).signal }
    if (await waits.wait(request)) return
    throw new ToolError(`The login at ${apiName(link)} is not finished. Finish it, then call the tool again.`)
  }

  /** Returns the scopes that a login adds. Throws a ToolError if the token already has them. */
  async function addedScopes(client: LoginClient, link: Link, stepUp: string): Promise<readonly string[]> {
    const scopes = await client.missingScopes(stepUp)
    if (scopes.length > 0 && scopes.join(' ').length <= MAX_SCOPES) return scopes
    throw new ToolError(`${apiName(link)} does not permit this request (HTTP 403).`)
  }

  /** Returns the token of the caller. Throws a LoginRequired error, or a ToolError without secrets. */
  async function requireToken(link: Link, rejected: Rejected | undefined): Promise<string> {
    const isStepUp = rejected?.stepUp !== undefined
    let token: string | undefined
    let required = link
    try {
      const client = await clientFor(link)
      token = await (rejected && !isStepUp ? client.renew(rejected.token) : client.token())
      if (isStepUp && token === rejected.token) {
        token = undefined
        required = { ...link, scopes: await addedScopes(client, link, rejected.stepUp) }
      }
    } catch (err) {
      if (ToolError.is(err)) throw err
      log.warn({ code: 'MH3453', err, login: link.id }, 'cannot get the token of a user for an API')
      throw new ToolError(`The host cannot get a token for ${apiName(link)} now. Try again later.`)
    }
    if (token !== undefined) return token
    throw new LoginRequired(apiName(link), {
      createUrl: () => createUrl(required),
      wait: ctx => wait(required, ctx, rejected?.token),
    })
  }

  const show = (ctx: HostContext, title: string, text: string, overrides: Partial<UserPage> = {}, status = 400) =>
    findAccess().pages.show(ctx, { title, text, isError: true, ...overrides }, status)

  const showExpired = (ctx: HostContext) =>
    show(ctx, 'This login has expired', 'The link was used before, or is too old. Call the tool again for a new one.')

  /** The browser's user. Undefined: the response redirects to the sign-in. */
  async function identify(ctx: HostContext, path: string): Promise<Owner | undefined> {
    const { pages, server } = findAccess()
    // Only the parameters of these pages: the path is stored until the user has signed in.
    const query = new URLSearchParams()
    for (const name of QUERY_PARAMETERS) if (name in ctx.query) query.set(name, asText(ctx.query[name]))
    const subject = await pages.identify(ctx, `${localPath(path)}${query.size === 0 ? '' : `?${query}`}`)
    const issuer = server.issuer()
    return subject === undefined || issuer === undefined ? undefined : { issuer, subject }
  }

  /** True if the browser's user is the caller. Otherwise a page is sent as the response. */
  async function isOwner(ctx: HostContext, { id, owner }: Link, path: string): Promise<boolean> {
    const user = await identify(ctx, path)
    if (!user) return false
    if (userKey(user) === userKey(owner)) return true
    const { subject } = user
    log.warn({ code: 'MH3454', login: id, subject, owner: owner.subject }, 'refused a login that another user started')
    const text =
      'You are signed in here as another user. Sign out, and open the link again. If you did not request it, close this page.'
    const action = { label: 'Account', href: `${user.issuer}/account` }
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

  const localPath = (path: string) => new URL(host.url(path)).pathname

  /** Returns the login URL for the user. Replaces a registration that was deleted or does not permit the scopes. */
  async function startLogin(link: Link): Promise<string> {
    const { scopes } = link
    const registered = loginTokens(link)
    const previousClientId = await registered.readClientId()
    const client = await clientFor(link)
    const url = await client.startLogin(scopes)
    const clientId = new URL(url).searchParams.get('client_id') ?? ''
    // The user would see an error page of the authorization server.
    const isReused = previousClientId !== undefined && clientId === previousClientId
    const isRegistered = requireAuth(link).clientId === undefined
    if (!isReused && !(isRegistered && scopes)) return url
    const refusal = await probeLoginUrl(url)
    // Other users keep the registration of their tokens.
    if (refusal === 'scope' && scopes) return client.startLogin(scopes, clientId)
    return refusal === 'client' && (await registered.dropRegistration(clientId)) ? client.startLogin(scopes) : url
  }

  async function showLink(ctx: HostContext, id: string): Promise<void> {
    const { records } = findAccess()
    const linkId = asText(ctx.query['link'])
    const link = await records.read<Link>(linkKey(linkId))
    if (link?.id !== id) return showExpired(ctx)
    if (!(await isOwner(ctx, link, pathOf(id)))) return
    if (!isFormToken(confirmKeys, linkId, ctx.query['confirm'])) {
      const href = `${localPath(pathOf(id))}?link=${linkId}&confirm=${formToken(confirmKeys, linkId)}`
      const permissions = link.scopes ? `, with more permissions: ${link.scopes.join(', ')}` : ''
      const text = `${config.server.name} requests access to ${apiName(link)} in your name${permissions}. Continue only if you started this.`
      return show(ctx, 'Log in', text, { action: { label: 'Continue', href }, isError: false }, 200)
    }
    let url: string
    try {
      url = await startLogin(link)
    } catch (error) {
      return showFailure(ctx, link, error)
    }
    if (!(await records.take(linkKey(linkId)))) return showExpired(ctx)
    redirectTo(ctx, url)
  }

  async function finish(ctx: HostContext, id: string): Promise<void> {
    const { records } = findAccess()
    const key = flowKey(asText(ctx.query['state']))
    const flow = await records.read<Flow>(key)
    if (flow?.id !== id) return showExpired(ctx)
    const path = `${pathOf(id)}/callback`
    if (!(await isOwner(ctx, flow, path))) {
      if (ctx.status === 403) await records.delete(key)
      return
    }
    try {
      await (await clientFor({ id, apiUrl: flow.apiUrl, owner: flow.owner })).complete(`${host.url(path)}${ctx.search}`)
    } catch (error) {
      if (isClientRefused(error)) await loginTokens(flow).dropRegistration(flow.record.client.clientId)
      return showFailure(ctx, flow, error)
    }
    waits.checkNow(waitKey(flow))
    log.info({ code: 'MH3456', login: id, subject: flow.owner.subject }, 'a user logged in at an API')
    const action = { label: 'Connected servers', href: localPath(CONNECT) }
    const text = 'Close this page, and return to your application.'
    await show(ctx, 'You are logged in', text, { isError: false, action }, 200)
  }

  const listLinks = (owner: Owner): Link[] => [...apis.values()].map(api => ({ ...api, owner }))
  const isConnected = async (link: Link) => (await clientFor(link)).isLoggedIn()

  const connections: Connections = {
    async list(owner) {
      const found = await Promise.all(
        listLinks(owner).map(async link => ((await isConnected(link)) ? [[apiKey(link), link] as const] : [])),
      )
      return new Map(found.flat())
    },
    async disconnect(link) {
      const { revoked } = await (await clientFor(link)).disconnect()
      const { id, owner } = link
      log.info({ code: 'MH3458', login: id, subject: owner.subject, revoked }, 'deleted the tokens of a user at an API')
    },
  }

  /** Lists the APIs where the user is logged in. POST: disconnects one. */
  async function showConnections(ctx: HostContext, all: ReadonlySet<Connections>): Promise<void> {
    const owner = await identify(ctx, CONNECT)
    if (!owner) return
    const form = `disconnect ${userKey(owner)}`
    const fields = isObject(ctx.request.body) ? ctx.request.body : {}
    let notice = ''
    if (ctx.method === 'POST') {
      if (!isFormToken(confirmKeys, form, fields['csrf']))
        return show(ctx, 'Form not accepted', 'The form is out of date. Open this page again.', {}, 403)
      for (const connections of all) {
        const link = (await connections.list(owner)).get(asText(fields['disconnect']))
        if (link) await connections.disconnect(link)
        if (link) notice = `You disconnected ${apiName(link)}. `
      }
    }
    const links = (await Promise.all([...all].map(connections => connections.list(owner)))).flatMap(found => [...found])
    const items = new Map(links.map(([value, link]) => [value, apiName(link)]))
    const text = `${notice}${items.size === 0 ? 'You are not logged in at a server.' : 'This service has access to these servers in your name.'}`
    const list = { name: 'disconnect', label: 'Disconnect', token: formToken(confirmKeys, form), items }
    await show(ctx, 'Connected servers', text, { isError: false, list }, 200)
  }

  /** auth-bridge no longer admits the user. */
  async function forgetUser(subject: string) {
    const issuer = findAccess().server.issuer()
    if (issuer === undefined) return
    const forget = async (link: Link) => {
      try {
        if (await isConnected(link)) await connections.disconnect(link)
      } catch (err) {
        log.warn({ code: 'MH3459', err, login: link.id, subject }, 'cannot delete the tokens of a user')
      }
    }
    await Promise.all(listLinks({ issuer, subject }).map(forget))
  }

  function setUpOnce() {
    host.onReady(check)
    const allConnections = host.share(CONNECTIONS, () => new Set<Connections>())
    if (allConnections.size === 0) {
      const serve = (ctx: HostContext) => showConnections(ctx, allConnections)
      host.endpoint(CONNECT, { body: 'form', methods: { GET: serve, POST: serve } })
    }
    allConnections.add(connections)
    host.onStart(() => {
      if (host.config.purpose === 'serve') findAccess().pages.onDenied(subject => void forgetUser(subject))
    })
  }

  const createEndpoint = (handle: (ctx: HostContext, id: string) => Promise<void>, id: string) => ({
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
      if (auths.size === 0) setUpOnce()
      auths.set(id, { kind: 'login' })
      host.endpoint(pathOf(id), createEndpoint(showLink, id))
      host.endpoint(`${pathOf(id)}/callback`, createEndpoint(finish, id))
    },
    source(id: string, auth: LoginAuth, apiUrl: string): TokenSource {
      auths.set(id, auth)
      apis.set(apiKey({ id, apiUrl }), { id, apiUrl })
      const ownLink = (ctx: CallContext): Link => ({ id, apiUrl, owner: requireOwner(ctx, apiName({ id, apiUrl })) })
      return callerTokens((ctx, rejected) => requireToken(ownLink(ctx), rejected), true)
    },
  }
}
