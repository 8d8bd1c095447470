// An authorization server for development, in the same process: with it, login and step-up can be tried on one machine.
// oidc-provider does the work; this file says where it is served, to whom, and where it refuses to run.
import { join, resolve } from 'node:path'
import type Provider from 'oidc-provider'
import { assertInstalled, HTTP_URL_PATTERN, isLoopback, SCOPE } from '../../core/auth.ts'
import {
  type BuiltInOptions,
  definePlugin,
  type FilledOptions,
  type HostContext,
  HostError,
  type HostMiddleware,
  type PluginHost,
  type Services,
  StartError,
} from '../../core/index.ts'
import {
  createResources,
  discoveryPaths,
  findResource,
  handOver,
  openToPages,
} from '../families/oidc-provider/index.ts'
import { createConsent } from './consent.ts'
import type { KeptState } from './kept-state.ts'
import type { DevUser } from './users.ts'

export type { DevUser } from './users.ts'

export type DevAuthServerOptions = BuiltInOptions['dev-auth-server']

const BASE = '/dev-auth'

const text = { type: 'string', minLength: 1 } as const
const texts = { type: 'array', items: text } as const

/** Anyone who reaches this server may sign in as anyone: it must not be reachable. */
function refuseToServeOthers({ at, http, processes }: PluginHost): void {
  const refuse = (why: string) => new StartError(why, { at })
  if (process.env['NODE_ENV'] === 'production') throw refuse('it lets everybody in; it does not run in production')
  if (processes > 1) throw refuse('its users and keys are in one process; start without --workers')
  if (!isLoopback(http.host)) throw refuse(`http.host is ${http.host}; it runs on a loopback address only`)
  const { publicUrl } = http
  if (publicUrl !== undefined && !isLoopback(new URL(publicUrl).hostname))
    throw refuse(`http.publicUrl is ${publicUrl}; it runs under a loopback address only`)
}

/** Whoever came by another name came through a tunnel, or by a page that made its own name lead here. */
function refuseForeignHost({ req }: HostContext): void {
  // The server may be somebody else's (`Host.callback`), who may listen for everybody.
  const from = req.socket.remoteAddress?.replace(/^::ffff:/i, '') ?? ''
  if (!isLoopback(from)) throw new HostError('hostNotAllowed', { detail: `to a caller at ${from}` })
  const { host: named, ':authority': authority = named, 'x-forwarded-host': forwarded } = req.headers
  for (const host of [named ?? authority ?? '', authority ?? '', forwarded ?? 'localhost']) {
    const address = `http://${host}`
    if (!URL.canParse(address) || !isLoopback(new URL(address).hostname))
      throw new HostError('hostNotAllowed', { detail: String(host) })
  }
}

/** Outside of the host's guard, for clients in pages of any origin; nothing there depends on a cookie. */
const openToOwnPages: HostMiddleware = (ctx, next) => {
  refuseForeignHost(ctx)
  return openToPages(ctx, next)
}

/** For people: the host's own guard applies, no page may frame it, and no page of another origin may read it. */
function forPeople(serve: (ctx: HostContext) => Promise<void>) {
  return (ctx: HostContext): Promise<void> => {
    refuseForeignHost(ctx)
    ctx.set('X-Frame-Options', 'DENY')
    ctx.set('Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'; base-uri 'none'")
    ctx.set('Referrer-Policy', 'same-origin')
    ctx.set('Cache-Control', 'no-store')
    return serve(ctx)
  }
}

function addEndpoints(host: PluginHost, getProvider: () => Promise<Provider>, users: readonly DevUser[]): void {
  const serve = handOver(getProvider)
  const at = (path: string) => (ctx: HostContext) => {
    ctx.path = path
    return serve(ctx)
  }
  const open = { public: true, cors: openToOwnPages }
  const discovery = { ...open, methods: { GET: at('/.well-known/openid-configuration') } }
  for (const path of discoveryPaths(BASE, host.http.publicUrl)) host.endpoint(path, discovery)
  host.endpoint(`${BASE}/jwks`, { ...open, methods: { GET: at('/jwks') } })
  for (const path of ['/token', '/reg', '/token/revocation']) {
    host.endpoint(`${BASE}${path}`, { ...open, methods: { POST: at(path) } })
  }
  const { show, answer } = createConsent(getProvider, users)
  const consent = { GET: forPeople(show), POST: forPeople(answer) }
  host.endpoint(`${BASE}/interaction/:uid`, { body: 'form', methods: consent })
  host.mount(BASE, forPeople(serve))
}

/** `mcp-host dev` says where what is kept for development lies: a restart there is one of many. */
function fileToKeepIn(given: string | undefined, { directory, purpose }: PluginHost): string | undefined {
  if (purpose === 'test') return undefined
  const folder = process.env['MCP_HOST_DEV_FOLDER']
  const standard = folder === undefined ? undefined : join(folder, 'dev-auth-server.json')
  return given === undefined ? standard : resolve(directory, given)
}

export const devAuthServer = definePlugin<DevAuthServerOptions, FilledOptions['dev-auth-server']>({
  options: {
    type: 'object',
    description: `For development: an authorization server at ${BASE}, on loopback addresses only.`,
    additionalProperties: false,
    properties: {
      resources: {
        ...texts,
        items: { ...texts.items, pattern: HTTP_URL_PATTERN },
        description: 'Resources that tokens are issued for. Default: those of the routes.',
      },
      keepIn: {
        ...text,
        description:
          'A file that keeps keys, clients and logins over a restart. Default: nothing is kept; with mcp-host dev .mcp-host/dev-auth-server.json.',
      },
      scopes: {
        ...texts,
        items: { ...texts.items, ...SCOPE },
        description: "May be asked for. Default: the metadata documents' scopes.",
      },
      users: {
        type: 'array',
        minItems: 1,
        default: [{ id: 'dev' }],
        description: 'Who can sign in, without a password.',
        items: {
          title: 'DevUser',
          type: 'object',
          description: 'Somebody who can sign in, with what their tokens say of them.',
          additionalProperties: false,
          required: ['id'],
          properties: {
            id: { ...text, description: "The token's sub." },
            name: { ...text, description: 'On the consent page. Default: the id.' },
            roles: { ...texts, description: "The token's roles." },
            claims: { type: 'object', description: 'Further claims of the token.' },
          },
        },
      },
    },
  },
  setup(host, { keepIn, resources, scopes, users }) {
    refuseToServeOthers(host)
    for (const [index, { id }] of users.entries()) {
      if (users.findIndex(user => user.id === id) === index) continue
      host.report(new StartError(`another user has the id "${id}" as well`, { at: [...host.at, 'users', index, 'id'] }))
    }
    assertInstalled(['oidc-provider'], host)
    let made: Promise<Provider> | undefined
    let flush = async () => {}
    host.closing(() => flush())
    const load = () => Promise.all([import('./provider.ts'), import('./kept-state.ts')])
    let opened: Promise<KeptState> | undefined
    const open = async () => {
      const [, { openState }] = await load()
      opened ??= openState(fileToKeepIn(keepIn, host), host.log)
      const state = await opened
      flush = state.flush
      return state
    }
    // It takes a second: the body of a first request that is a POST would not wait for it.
    host.starting(async () => {
      if (host.purpose !== 'inspect') await open()
    })
    // Made with the first request: only then does the host have an address, which the issuer is part of.
    async function make(services: Services): Promise<Provider> {
      const [{ createProvider }] = await load()
      const state = await open()
      const own = createResources(host, services, [])
      const provider = createProvider({
        issuer: host.url(BASE),
        users,
        state,
        guardedFetch: services.guardedFetch,
        scopes: scopes ?? own.scopes,
        resources: resources
          ? {
              find: resource => findResource(resources, resource),
              only: resources.length === 1 ? resources[0] : undefined,
            }
          : own,
      })
      provider.on('server_error', ({ path }, err) => host.log.error({ err, path }, 'the authorization server failed'))
      return provider
    }
    host.serving(services => {
      const getProvider = () => {
        made ??= make(services)
        return made
      }
      addEndpoints(host, getProvider, users)
    })
    host.log.warn({ path: BASE }, 'an authorization server for development is on: whoever reaches it may sign in')
  },
})
