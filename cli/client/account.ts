// A stored login: its options, its token file, and a `fetch` that uses both.

import { createAuthFetchOn } from '../../client/auth-fetch.ts'
import type { AuthFetch, ClientOAuthOptions } from '../../client/index.ts'
import type { FileTokenCache } from '../../client/node/file-cache.ts'
import { createFileTokenCache } from '../../client/node/index.ts'
import type { Grant } from '../../client/options.ts'
import type { Platform } from '../../client/session.ts'
import type { TokenContainer } from '../../client/stores.ts'
import { defined } from '../../client/text.ts'
import { createCacheKey, secretsIn } from '../../client/token-store.ts'
import type { CommandContext } from '../context.ts'
import { type Credentials, loadCredentials } from './credentials.ts'
import { createLoginFetch, type HttpOptions } from './http-flags.ts'
import { createLogins, type Login, tokenDirectory } from './stored-logins.ts'
import { step } from './terminal.ts'

export type Accounts = ReturnType<typeof openAccounts>

const DIRECT: HttpOptions = { headers: [], headerFiles: [], proxy: undefined }

function trackSecrets(cache: FileTokenCache, { secrets }: CommandContext): FileTokenCache {
  const track = (tokens: TokenContainer | undefined) => secrets.add(...secretsIn(tokens))
  return {
    ...cache,
    async getTokens(context) {
      const tokens = await cache.getTokens(context)
      track(tokens)
      return tokens
    },
    storeTokens(tokens, context) {
      track(tokens)
      return cache.storeTokens(tokens, context)
    },
  }
}

export function openAccounts(context: CommandContext, http: HttpOptions = DIRECT) {
  const { env } = context
  const directory = tokenDirectory(env)
  const key = env['MCP_HOST_TOKEN_KEY']
  const logins = createLogins(directory)
  return {
    context,
    cache: trackSecrets(createFileTokenCache(directory, key ? { key } : {}), context),
    logins,
    fetchFor: (login: Login): typeof fetch => createLoginFetch(context, http, login),
    async load(url: string, profile: string | undefined): Promise<Login> {
      return (await logins.find(url, profile)) ?? { v: 1, url, profile, grant: 'authorization_code' }
    },
  }
}

const toGrant = ({ grant }: Login, context: Pick<CommandContext, 'say'>): Grant =>
  grant !== 'device'
    ? { type: grant }
    : {
        type: 'device',
        onUserCode({ userCode, verificationUri, verificationUriComplete }) {
          context.say(`Open ${verificationUri} on any device and enter the code ${userCode}`)
          if (verificationUriComplete !== undefined) context.say(`or open ${verificationUriComplete}`)
          step(context, 'waiting', 'to log in; Ctrl-C cancels')
        },
      }

export const loginKey = (login: Login): Promise<string> =>
  createCacheKey({
    serverUrl: login.url,
    profile: login.profile,
    clientId: login.clientId,
    clientMetadataDocumentUri: login.clientMetadataDocumentUri,
    grant: toGrant(login, { say: () => undefined }),
  } as Parameters<typeof createCacheKey>[0])

export async function loginsByKey({ logins }: Accounts): Promise<ReadonlyMap<string, Login>> {
  const all = await logins.list()
  return new Map(await Promise.all(all.map(async login => [await loginKey(login), login] as const)))
}

export const readTokens = async ({ cache }: Accounts, login: Login): Promise<TokenContainer | undefined> =>
  cache.getTokens({ key: await loginKey(login) })

type OpenOptions = Pick<
  ClientOAuthOptions,
  'authorizationRedirectDelegate' | 'interactive' | 'legacyFallback' | 'loginTimeoutMs' | 'onEvent' | 'redirectUri'
>

export async function openAuthFetch(
  accounts: Accounts,
  login: Login,
  options: OpenOptions,
  credentials: Credentials = loadCredentials(accounts.context, login),
  platform: Platform = {},
): Promise<AuthFetch> {
  const { url, profile, clientId, clientMetadataDocumentUri, scopes } = login
  // A client registration is valid for one redirect URI only, even without a redirect.
  const tokens = await readTokens(accounts, login)
  const redirectRegistered = tokens?.registration?.redirectUri
  // Logins stored by earlier versions have no issuer, but their tokens have.
  const clientIssuer = login.clientIssuer ?? (credentials.clientSecret && tokens?.authorizationServer)
  const redirectUri = options.redirectUri ?? (login.grant === 'authorization_code' ? redirectRegistered : undefined)
  return createAuthFetchOn(platform, {
    serverUrl: url,
    grant: toGrant(login, accounts.context),
    tokenCache: accounts.cache,
    fetch: accounts.fetchFor(login),
    dynamicClientRegistration: { clientName: 'mcp-host' },
    ...defined({ profile, clientId, clientMetadataDocumentUri, scopes }),
    ...(clientId !== undefined && clientIssuer && { clientIssuer }),
    ...login.ways,
    ...credentials,
    ...options,
    ...(redirectUri !== undefined && { redirectUri }),
  })
}
