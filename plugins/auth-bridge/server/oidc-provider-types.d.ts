// The part of oidc-provider that plugins use; the package has no types of its own. Delete it when
// `@types/oidc-provider` is among the dependencies.
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  export interface Grant {
    readonly jti: string
    readonly accountId: string
    readonly clientId: string
    rejected?: object | undefined
    addOIDCScope(scope: string): void
    rejectOIDCScope(scope: string): void
    addResourceScope(resource: string, scope: string): void
    rejectResourceScope(resource: string, scope: string): void
    getResourceScope(resource: string): string
    save(): Promise<string>
    destroy(): Promise<void>
  }

  export interface Interaction {
    readonly uid: string
    readonly grantId?: string
    readonly prompt: { readonly name: string; readonly reasons: readonly string[] }
    readonly session?: { readonly accountId: string; readonly uid?: string }
    readonly params: Readonly<Record<string, unknown>>
    readonly result?: Readonly<Record<string, unknown>>
    readonly lastSubmission?: Readonly<Record<string, unknown>>
    readonly returnTo: string
  }

  export interface Client {
    readonly clientId: string
    readonly clientName?: string
    readonly clientUri?: string
    readonly redirectUris: readonly string[]
    readonly applicationType: 'web' | 'native'
    /** Where it came from its metadata document. */
    readonly clientIdMetadataDocument?: true
    grantTypeAllowed(type: string): boolean
    metadata(): Record<string, unknown>
  }

  export interface Session {
    accountId?: string | undefined
    authorizations?: object | undefined
    readonly uid: string
    readonly jti: string
    readonly exp?: number
    grantIdFor(clientId: string): string | undefined
    persist(): Promise<string>
    save(seconds: number): Promise<string>
    resetIdentifier(): void
    loginAccount(details: { accountId: string }): void
    destroy(): Promise<void>
  }

  /** A request that oidc-provider does not answer itself. */
  export interface OwnContext {
    readonly cookies: {
      secure: boolean
      get(name: string, options: object): string | undefined
      set(name: string, value: string | null, options: object): void
    }
  }

  /** What is known of a request within the authorization server. */
  export interface OidcContext {
    readonly params: Readonly<Record<string, unknown>>
    readonly client: Client
    readonly session: Session
    readonly account?: { readonly accountId: string }
    readonly grant: Grant
    readonly result?: Readonly<Record<string, unknown>>
    readonly requestParamScopes: ReadonlySet<string>
    readonly resourceServers: Readonly<Record<string, { readonly scopes: ReadonlySet<string> }>>
    readonly route: string
    readonly body?: unknown
    readonly entities: Readonly<Record<string, unknown>>
    readonly provider: Provider
    entity(name: string, value: unknown): void
  }

  export interface ProviderContext {
    readonly oidc: OidcContext
    readonly cookies: OwnContext['cookies']
    readonly ip: string
    readonly path: string
    readonly res: ServerResponse
    body: unknown
    type: string
    status: number
    set(name: string, value: string): void
    /** The one of these that the request would have; the first where any will do. */
    accepts(...types: readonly string[]): string | false
  }

  export interface AccessToken {
    scope?: string
    resourceServer: object
    readonly tokenType: string
    readonly expiration: number
    save(): Promise<string>
  }

  interface Prompt {
    readonly name: string
    readonly checks: { add(check: object, index?: number): void; remove(reason: string): void }
  }

  export default class Provider {
    constructor(issuer: string, configuration: object)
    /** Of the request that is answered; undefined outside of one. */
    static readonly ctx: ProviderContext | undefined
    readonly issuer: string
    proxy: boolean
    use(middleware: (ctx: ProviderContext, next: () => Promise<void>) => Promise<void>): this
    registerResponseMode(name: string, handler: (...given: unknown[]) => void): void
    readonly Grant: {
      new (of: { accountId: string; clientId: string }): Grant
      find(id: string): Promise<Grant | undefined>
    }
    readonly Session: { get(ctx: OwnContext): Promise<Session> }
    readonly Client: { find(id: string): Promise<Client | undefined> }
    readonly AccessToken: {
      find(token: string): Promise<{ readonly accountId: string; readonly grantId: string } | undefined>
      new (of: object): AccessToken
    }
    readonly ResourceServer: { new (identifier: string, info: object): { readonly scopes: ReadonlySet<string> } }
    createContext(req: IncomingMessage, res: ServerResponse): OwnContext
    cookieName(type: 'session' | 'interaction' | 'resume'): string
    callback(): (req: IncomingMessage, res: ServerResponse) => Promise<void>
    interactionDetails(req: IncomingMessage, res: ServerResponse): Promise<Interaction>
    interactionResult(req: IncomingMessage, res: ServerResponse, result: object): Promise<string>
    interactionFinished(req: IncomingMessage, res: ServerResponse, result: object): Promise<void>
    registerGrantType(
      name: string,
      handler: (ctx: ProviderContext) => Promise<void>,
      parameters: readonly string[],
      repeatable?: readonly string[],
    ): void
    on(event: 'error', listener: (error: Error) => void): this
    on(event: 'server_error', listener: (ctx: { path: string }, error: Error) => void): this
    on(event: 'authorization.error' | 'grant.error', listener: (ctx: ProviderContext, error: Error) => void): this
    on(event: 'grant.revoked', listener: (ctx: ProviderContext, grantId: string) => void): this
  }

  type OAuthError = new (description?: string) => Error

  export const errors: {
    readonly InvalidTarget: OAuthError
    readonly InvalidGrant: OAuthError
    readonly InvalidRequest: OAuthError
    /** `detail` is not for the client. */
    readonly InvalidClient: new (
      description: string,
      detail?: string,
    ) => Error
    readonly InvalidClientMetadata: new (description: string) => Error
    readonly CustomOIDCProviderError: new (
      error: string,
      description: string,
    ) => Error & { status: number; statusCode: number }
    readonly SessionNotFound: OAuthError
  }

  export const interactionPolicy: {
    base(): { get(name: 'login' | 'consent'): Prompt; remove(name: 'login' | 'consent'): void } & readonly Prompt[]
    readonly Check: new (
      reason: string,
      description: string,
      error: string,
      check: (ctx: ProviderContext) => boolean | Promise<boolean>,
    ) => object
  }
}
