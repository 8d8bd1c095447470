// Clients as applications have them, of both official generations, with their own way to sign in and over our `fetch`. Each
// keeps what an application keeps, so that a later connection can go on with it.
import {
  Client,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client'
import { UnauthorizedError as OldUnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { createAuthFetch, createMemoryTokenCache, type TokenCache, type TokenContainer } from '../../../client/index.ts'
import { type Landing, type Person, startLanding } from './browser-user.ts'

const SPOILT = 'no token of anybody'
const INFO = { name: 'official', version: '1.0.0' }

/** One application of one person. */
export interface Application {
  /** A new connection, with what was kept; the person signs in where the client asks for it. */
  connect(): Promise<void>
  tools(): Promise<string[]>
  /** What a tool answers. A client that asks for more on the way gets it. */
  call(name: string): Promise<unknown>
  /** What it keeps. */
  readonly kept: Kept
  /** Puts something that no server takes in the place of its access token. */
  spoil(): void
  close(): Promise<void>
}

export interface Kept {
  readonly clientId: string
  readonly accessToken: string
  readonly refreshToken: string | undefined
}

/** `document`: the URL of the client's metadata document; without one it registers itself. */
export type StartApplication = (url: string, person: Person, document?: string) => Promise<Application>

type ClientInformation = Parameters<NonNullable<OAuthClientProvider['saveClientInformation']>>[0]
type Tokens = Parameters<OAuthClientProvider['saveTokens']>[0]

/** The way to sign in of the official clients: the application is told where to send its person. */
class Provider {
  readonly redirectUrl: string
  readonly clientMetadata
  readonly clientMetadataUrl?: string
  readonly #person: Person
  #client: ClientInformation | undefined
  #tokens: Tokens | undefined
  #discovery: OAuthDiscoveryState | undefined
  #verifier = ''
  #sentTo: URL | undefined

  constructor({ redirectUri }: Landing, person: Person, document: string | undefined) {
    this.#person = person
    if (document !== undefined) this.clientMetadataUrl = document
    this.redirectUrl = redirectUri
    this.clientMetadata = {
      client_name: 'official client',
      redirect_uris: [redirectUri],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    }
  }

  clientInformation = () => this.#client
  tokens = () => this.#tokens
  codeVerifier = () => this.#verifier
  discoveryState = () => this.#discovery
  saveClientInformation = (client: ClientInformation) => {
    this.#client = client
  }
  saveTokens = (tokens: Tokens) => {
    this.#tokens = tokens
  }
  saveDiscoveryState = (state: OAuthDiscoveryState) => {
    this.#discovery = state
  }
  saveCodeVerifier = (verifier: string) => {
    this.#verifier = verifier
  }
  redirectToAuthorization = (address: URL) => {
    this.#sentTo = address
  }
  invalidateCredentials = (what: 'all' | 'client' | 'tokens' | 'verifier' | 'discovery') => {
    if (what === 'all' || what === 'client') this.#client = undefined
    if (what === 'all' || what === 'tokens') this.#tokens = undefined
    if (what === 'all' || what === 'discovery') this.#discovery = undefined
  }

  /** Undefined where nobody was asked. */
  async answer(): Promise<URL | undefined> {
    const address = this.#sentTo
    this.#sentTo = undefined
    return address && this.#person.answer(address)
  }

  spoil() {
    if (this.#tokens) this.#tokens = { ...this.#tokens, access_token: SPOILT }
  }

  get kept(): Kept {
    return {
      clientId: this.#client?.client_id ?? '',
      accessToken: this.#tokens?.access_token ?? '',
      refreshToken: this.#tokens?.refresh_token,
    }
  }
}

interface Connection {
  readonly client: Client | OldClient
  connect(): Promise<void>
  finish(brought: URLSearchParams): Promise<void>
}

const isUnauthorized = (error: unknown) => error instanceof UnauthorizedError || error instanceof OldUnauthorizedError

async function startOfficial(
  person: Person,
  document: string | undefined,
  connectionOf: (provider: Provider) => Connection,
): Promise<Application> {
  const landing = await startLanding()
  const provider = new Provider(landing, person, document)
  const all: Connection[] = []
  const open = () => {
    const connection = connectionOf(provider)
    all.push(connection)
    return connection
  }
  let current = open()

  /** As their documentation has it: sends the person, finishes with what they bring, and does it again. */
  async function signingIn<Value>(run: (now: Connection) => Promise<Value>, renew: boolean): Promise<Value> {
    try {
      return await run(current)
    } catch (error) {
      const arrived = isUnauthorized(error) ? await provider.answer() : undefined
      if (!arrived) throw error
      await current.finish(await landing.arrive(arrived))
      if (renew) current = open()
      return run(current)
    }
  }

  return {
    async connect() {
      // The GET stream of an abandoned connection is opened again, and starts a second sign-in with another code verifier.
      await current.client.close()
      current = open()
      return signingIn(now => now.connect(), true)
    },
    tools: () => signingIn(async now => (await now.client.listTools()).tools.map(({ name }) => name), false),
    call: name => signingIn(async now => (await now.client.callTool({ name })).structuredContent, false),
    get kept() {
      return provider.kept
    },
    spoil: () => provider.spoil(),
    async close() {
      await Promise.allSettled(all.map(({ client }) => client.close()))
    },
  }
}

const newer =
  (mode: 'auto' | 'legacy'): StartApplication =>
  (url, person, document) =>
    startOfficial(person, document, provider => {
      const client = new Client(INFO, { versionNegotiation: { mode } })
      const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider })
      return { client, connect: () => client.connect(transport), finish: brought => transport.finishAuth(brought) }
    })

const older: StartApplication = (url, person, document) =>
  startOfficial(person, document, provider => {
    const client = new OldClient(INFO)
    const transport = new OldTransport(new URL(url), { authProvider: provider })
    return {
      client,
      // Its transport's types do not hold under exactOptionalPropertyTypes.
      connect: () => client.connect(transport as Parameters<OldClient['connect']>[0]),
      finish: brought => transport.finishAuth(brought.get('code') ?? ''),
    }
  })

/** Our `fetch` under a client that knows nothing of signing in. */
const ours =
  (make: (url: string, fetch: typeof globalThis.fetch) => Omit<Connection, 'finish'>): StartApplication =>
  async (url, person, document) => {
    let container: TokenContainer | undefined
    const tokenCache: TokenCache = {
      ...createMemoryTokenCache(),
      getTokens: () => container,
      storeTokens: given => {
        container = given
      },
      deleteTokens: () => {
        container = undefined
      },
    }
    const { redirectUri } = await startLanding()
    const all: Array<Omit<Connection, 'finish'>> = []
    const open = () => {
      const authFetch = createAuthFetch({
        ...{ serverUrl: url, redirectUri, tokenCache, strictResponse: true },
        authorizationRedirectDelegate: person.answer,
        ...(document !== undefined && { clientMetadataDocumentUri: document }),
      })
      const connection = make(url, authFetch)
      all.push(connection)
      return connection
    }
    let current = open()
    return {
      connect() {
        current = open()
        return current.connect()
      },
      tools: async () => (await current.client.listTools()).tools.map(({ name }) => name),
      call: async name => (await current.client.callTool({ name })).structuredContent,
      get kept() {
        return {
          clientId: container?.clientId ?? '',
          accessToken: container?.accessToken ?? '',
          refreshToken: container?.refreshToken,
        }
      },
      spoil() {
        container = container && { ...container, accessToken: SPOILT }
      },
      async close() {
        await Promise.allSettled(all.map(({ client }) => client.close()))
      },
    }
  }

const oursNewer = ours((url, fetch) => {
  const client = new Client(INFO, { versionNegotiation: { mode: 'auto' } })
  const transport = new StreamableHTTPClientTransport(new URL(url), { fetch })
  return { client, connect: () => client.connect(transport) }
})

const oursOlder = ours((url, fetch) => {
  const client = new OldClient(INFO)
  const transport = new OldTransport(new URL(url), { fetch })
  return { client, connect: () => client.connect(transport as Parameters<OldClient['connect']>[0]) }
})

export interface ApplicationCase {
  readonly name: string
  readonly start: StartApplication
  /** With a refresh token the client of 1.x answers a 403 by a refresh, which gives no scope more, and then gives up. */
  readonly stepsUp: boolean
  /** What it says where its person may not have the scope that a tool takes. */
  readonly refusal: RegExp
}

export const APPLICATIONS: readonly ApplicationCase[] = [
  { name: '@modelcontextprotocol/sdk 1.x', start: older, stepsUp: false, refusal: /403 after trying upscoping/ },
  {
    name: '@modelcontextprotocol/client at 2026-07-28',
    ...{ start: newer('auto'), stepsUp: true, refusal: /UnauthorizedError/ },
  },
  {
    name: '@modelcontextprotocol/client with sessions',
    ...{ start: newer('legacy'), stepsUp: true, refusal: /UnauthorizedError/ },
  },
  {
    name: 'our fetch under @modelcontextprotocol/client',
    ...{ start: oursNewer, stepsUp: true, refusal: /required "read admin"/ },
  },
  {
    name: 'our fetch under @modelcontextprotocol/sdk 1.x',
    ...{ start: oursOlder, stepsUp: true, refusal: /needs read admin/ },
  },
]
