// Sets up the bridge: checks options, fills slots and serves pages. Loaded on demand.
import { join, resolve } from 'node:path'
import { assertInstalled, isLoopback } from '../../core/auth.ts'
import type { InternalHost } from '../../core/internal.ts'
import { errorText, parseDuration, StartError } from '../../core/plugin.ts'
import { grantSources } from '../families/credentials/index.ts'
import { createTrustedIssuers } from './assertions/trusted-issuers.ts'
import { pagesOf } from './browser/sign-in.ts'
import { parseRedirectPattern } from './clients/redirects.ts'
import { type KeptStore, openKeptStore } from './development/kept-store.ts'
import { createDevelopmentUpstream } from './development/upstream.ts'
import { addEndpoints } from './endpoints.ts'
import { type FilledAuthBridge, isDevelopment } from './options.ts'
import { type Logo, readLogo } from './pages/index.ts'
import { deriveSigningKeys, readSigningKeys, type SigningKey } from './server/signing-keys.ts'
import { createUpstream } from './upstream/index.ts'
import { upstreamTokenOf } from './upstream-context.ts'
import { createBridgeTokens } from './upstream-tokens.ts'

function checkAddress({ config: { at, http } }: InternalHost): void {
  const { publicUrl } = http
  const refuse = (why: string) => new StartError('MH2106', why, { at })
  if (publicUrl === undefined && !isLoopback(http.host))
    throw refuse('the issuer is under http.publicUrl: set it to the https URL of this host for clients')
  if (publicUrl?.startsWith('http:') && !isLoopback(new URL(publicUrl).hostname))
    throw refuse(`http.publicUrl is ${publicUrl}: codes and cookies would go over plain http; use https`)
}

function checkKeys(
  { ownKeys, config: { at, processes, purpose }, log, report }: InternalHost,
  { isShared, isKept }: { isShared: boolean; isKept: boolean },
): void {
  const make = 'make a secret with `openssl rand -base64 32` and put it into `secrets`, or into MCP_HOST_SECRETS'
  if (ownKeys && isShared)
    report(new StartError('MH2107', `all nodes must sign tokens with the same keys; ${make}`, { at }))
  else if (ownKeys && !isKept)
    log.warn({ code: 'MH2107', fix: make }, 'The keys that sign tokens are temporary: a restart signs all users out')
  if (!isShared && !isKept && purpose === 'serve' && processes === 1)
    log.warn(
      { code: 'MH2108', fix: 'add store-sqlite, grant-store-redis or cluster-redis' },
      'Logins are kept in memory: a restart signs all users out',
    )
  if (processes > 1 && !isShared) {
    const why =
      'logins are in one process; add store-sqlite, grant-store-redis or cluster-redis, or start without --workers'
    report(new StartError('MH2108', why, { at }))
  }
}

function readKeys(
  { config: { at, directory } }: InternalHost,
  { signingKeys }: FilledAuthBridge,
  keys: InternalHost['config']['keys'],
): SigningKey[] {
  if (signingKeys === undefined) return deriveSigningKeys(keys('auth-bridge signing'))
  try {
    return readSigningKeys(resolve(directory, signingKeys))
  } catch (cause) {
    throw new StartError('MH2109', errorText(cause), { at: [...at, 'signingKeys'], cause })
  }
}

function logoOf({ config: { at, directory } }: InternalHost, { page: { logo } }: FilledAuthBridge): Logo | undefined {
  try {
    return logo === undefined ? undefined : readLogo(logo, directory)
  } catch (error) {
    throw error instanceof StartError ? error.locatedAt([...at, 'page', 'logo']) : error
  }
}

function fixedClientProblem({
  authMethod,
  clientSecret,
  keys,
}: FilledAuthBridge['clients']['fixed'][number]): string | undefined {
  if (keys && clientSecret !== undefined) return 'it has a secret and keys; remove one of them'
  if (authMethod === 'private_key_jwt' && !keys) return 'private_key_jwt needs keys, its public keys as JWKs'
  if (keys && authMethod !== undefined && authMethod !== 'private_key_jwt') return `${authMethod} needs no keys`
  if (authMethod?.startsWith('client_secret') && clientSecret === undefined) return `${authMethod} needs clientSecret`
  const isPrivate = keys?.some(key => ['d', 'k'].some(part => key[part] !== undefined)) ?? false
  return isPrivate
    ? 'keys has a private or symmetric key; put the public half here, and keep the other with the client'
    : undefined
}

function checkClients({ config: { at }, report }: InternalHost, { clients }: FilledAuthBridge): void {
  const check = (text: string, place: readonly (string | number)[]) => {
    try {
      parseRedirectPattern(text)
    } catch (cause) {
      report(new StartError('MH2110', errorText(cause), { at: [...at, 'clients', ...place], cause }))
    }
  }
  for (const [index, text] of clients.redirects.entries()) check(text, ['redirects', index])
  for (const [index, client] of clients.fixed.entries()) {
    for (const [number, text] of client.redirects.entries()) check(text, ['fixed', index, 'redirects', number])
    const problem = fixedClientProblem(client)
    if (problem !== undefined) report(new StartError('MH2110', problem, { at: [...at, 'clients', 'fixed', index] }))
  }
}

function storeOf({ config: { at }, routes, services }: InternalHost) {
  const stores = new Set(routes.map(route => services.slot('grantStore', route)))
  const [store] = stores
  if (!store || stores.size > 1)
    throw new StartError('MH2111', 'its routes keep grants in different stores; it needs one', { at })
  return store
}

/** Time limit per request, milliseconds: three requests fit into the login lock (people/logins.ts). */
const PROVIDER_TIMEOUT = 6_000

/** Suppresses the warning of oidc-provider about Node.js 20, which this host supports. */
async function load() {
  const { warn } = console
  console.warn = (...given: unknown[]) => {
    if (!String(given[0]).includes('oidc-provider WARNING: Unsupported runtime')) warn.apply(console, given)
  }
  try {
    return await Promise.all([import('./make.ts'), import('./browser/handlers.ts')])
  } finally {
    console.warn = warn
  }
}

async function openKept(
  host: InternalHost,
  { provider: { keepIn } }: FilledAuthBridge,
): Promise<KeptStore | undefined> {
  const folder = process.env['MCP_HOST_DEV_FOLDER']
  const standard = folder === undefined ? undefined : join(folder, `${host.name}.json`)
  const file = keepIn === undefined ? standard : resolve(host.config.directory, keepIn)
  if (file === undefined || host.config.purpose === 'test' || host.config.purpose === 'inspect') return undefined
  const kept = await openKeptStore(file, host.log)
  host.onClose(kept.flush)
  return kept
}

export async function setUpBridge(host: InternalHost, options: FilledAuthBridge): Promise<void> {
  const inDevelopment = isDevelopment(options)
  if (host.routes.length === 0) return
  assertInstalled(['oidc-provider'], host.config)
  checkAddress(host)
  checkClients(host, options)
  if (parseDuration(options.refreshToken) < parseDuration(options.accessToken)) {
    const why = `is shorter than accessToken (${options.accessToken}), so no client can use a refresh token`
    host.report(new StartError('MH2112', why, { at: [...host.config.at, 'refreshToken'] }), 'warning')
  }
  const kept = inDevelopment ? await openKept(host, options) : undefined
  const keys = kept?.keys ?? host.config.keys
  const signing = readKeys(host, options, keys)
  const place = [...host.config.at, 'provider']
  const upstream = inDevelopment
    ? createDevelopmentUpstream(options.provider, () => `${issuer()}/sign-in`)
    : createUpstream(options.provider, { at: place, log: host.log, timeout: PROVIDER_TIMEOUT })
  const trusted = createTrustedIssuers(host, options)
  const listeners = new Set<(subject: string) => void>()
  const parts = { listeners, host, options, keys, upstream, trusted, signing, logo: logoOf(host, options) }
  const issuer = () => host.url(options.path)
  const published = signing.map(({ publicJwk }) => publicJwk)
  const pages = { ...pagesOf(() => getBridge(), host.clock), onDenied: listeners.add.bind(listeners) }
  host.provide('authorizationServer', { issuer, keys: () => published, isDevelopment: inDevelopment, pages })
  const getStore = () => kept?.store ?? storeOf(host)
  const make = async () => {
    const [{ makeBridge }, { handlers }] = await load()
    const bridge = makeBridge({ ...parts, services: host.services, store: getStore() })
    return { bridge, handlers, tokens: createBridgeTokens(bridge, host.services) }
  }
  let made: ReturnType<typeof make> | undefined
  const getBridge = () => {
    made ??= make().catch((error: unknown) => {
      made = undefined
      throw error
    })
    return made
  }
  grantSources(host).add({
    issuer,
    async newest() {
      const { bridge } = await getBridge()
      const { list, isCut } = await bridge.consents.newest()
      return { grants: await bridge.ongoing(list), isCut, fixed: bridge.known }
    },
  })
  const member = upstreamTokenOf(async (caller, request) => (await getBridge()).tokens.tokenFor(caller, request))
  host.context('upstreamToken', member)
  addEndpoints(host, options, getBridge)
  host.onReady(() => checkKeys(host, { isShared: getStore().shared, isKept: inDevelopment }))
  // Loaded before listening, because the body of the first POST would not wait.
  host.onStart(async () => {
    if (host.config.purpose !== 'inspect') await load()
  })
}
