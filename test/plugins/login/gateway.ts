// Helpers of the tests of logins: gateways whose users log in at an API, and what the users and their clients do.
import { META } from '../../../core/mcp/wire/protocol.ts'
import { makeFolder } from '../../config/folder.ts'
import type { ApiWithLogin } from '../../support/api-with-login.ts'
import type { StartedBridge } from '../../support/bridge.ts'
import { Browser } from '../../support/form-browser.ts'
import type { IdentityProvider } from '../../support/identity-provider.ts'
import type { ManualClock } from '../../support/manual-clock.ts'
import { modern } from '../../support/rpc.ts'

// The plugin loads parts on demand, which are ES modules: the host must not be a second copy of them.
export const load = async () => ({
  ...(await import('../../../plugins/families/grant-store/index.ts')),
  ...(await import('../../../core/store/memory-store.ts')),
  ...(await import('../../fixtures/plugins.ts')),
  ...(await import('../../support/api-with-login.ts')),
  ...(await import('../../support/bridge.ts')),
  ...(await import('../../support/start-host.ts')),
})
export type Loaded = Awaited<ReturnType<typeof load>>

export const URL_CLIENT = { elicitation: { url: {} } }
const DOCUMENT = (server: string) =>
  JSON.stringify({
    openapi: '3.1.0',
    info: { title: 'things', version: '1' },
    servers: [{ url: server }],
    paths: { '/me': { get: { operationId: 'me', responses: { 200: { description: 'ok' } } } } },
  })

export interface User {
  readonly name: string
  readonly browser: Browser
  readonly headers: Readonly<Record<string, string>>
}

/** A user with a client of the gateway, signed in there. */
export async function signIn(gateway: StartedBridge, api: ApiWithLogin, name: string): Promise<User> {
  gateway.idp.nextUser = name
  const client = await gateway.client()
  const { access_token } = await client.logIn()
  const browser = new Browser(gateway.url, gateway.idp.origin, api.issuer)
  for (const [key, cookie] of client.browser.cookies) browser.cookies.set(key, cookie)
  return { name, browser, headers: { Authorization: `Bearer ${access_token}` } }
}

/** A browser with the cookies of a user that follows redirects to these origins only. */
export function browserOf({ browser }: User, ...homes: readonly string[]): Browser {
  const other = new Browser(...homes)
  for (const [key, cookie] of browser.cookies) other.cookies.set(key, cookie)
  return other
}

const unescapeHtml = (text: string) => text.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))

/** The target of the button of a page. */
export function buttonOf({ html, url }: { readonly html: string; readonly url: string }): URL {
  const href = /class="button main" href="([^"]*)"/.exec(html)?.[1]
  if (href === undefined) throw new Error(`no button: ${html}`)
  return new URL(unescapeHtml(href), url)
}

/** Opens a link, continues, and logs in at the API. */
export async function logIn({ browser }: User, link: string) {
  return browser.page(buttonOf(await browser.page(link)))
}

/** The URL of the callback, which the browser has not opened yet. */
export async function callbackOf(gateway: StartedBridge, api: ApiWithLogin, user: User, link: string): Promise<URL> {
  const here = browserOf(user, gateway.url)
  const departure = await here.open(buttonOf(await here.page(link)))
  if (!('redirect' in departure)) throw new Error(`no redirect: ${departure.html}`)
  const back = await new Browser(api.issuer).open(departure.redirect)
  if (!('redirect' in back)) throw new Error(`no callback: ${back.html}`)
  return back.redirect
}

export const call = (
  gateway: StartedBridge,
  { headers }: User,
  name: string,
  params: object = {},
  capabilities: object = URL_CLIENT,
) =>
  modern(
    gateway.resource,
    'tools/call',
    { name, ...params },
    { headers, meta: { [META.clientCapabilities]: capabilities } },
  ).then(({ message }) => message.result ?? message)

export const linkOf = (result: { inputRequests: { login: { params: { url: string } } } }) =>
  result.inputRequests.login.params.url

export interface Settings {
  readonly options?: object
  readonly clock?: ManualClock
  readonly login?: object
  readonly plugins?: object
  readonly config?: object
  readonly idp?: IdentityProvider
}

export async function startGateway(
  loaded: Loaded,
  api: ApiWithLogin,
  { plugins, config, idp, options, clock, login }: Settings = {},
): Promise<StartedBridge> {
  const folder = await makeFolder({ 'things.json': DOCUMENT(api.apiUrl) })
  const gateway = await loaded.startBridge({
    ...(options && { options }),
    ...(clock && { clock }),
    idp: idp ?? { users: [{ sub: 'ann' }, { sub: 'ben' }] },
    config: { routes: { '/mcp': { toolsets: ['far', 'things'], authorize: true } }, toolsets: {}, ...config },
    plugins: {
      upstream: { servers: { far: { url: api.mcpUrl, auth: { kind: 'login', ...login } } } },
      openapi: {
        documents: {
          things: {
            document: `${folder}/things.json`,
            allowHosts: [new URL(api.apiUrl).host],
            auth: {
              kind: 'login',
              issuer: api.issuer,
              clientId: loaded.KNOWN_CLIENT.id,
              clientSecret: loaded.KNOWN_CLIENT.secret,
              scopes: ['openid', 'offline_access'],
            },
          },
        },
      },
      ...plugins,
    },
  })
  api.callback = `${gateway.url}/connect/things/callback`
  return gateway
}
