// The part of oidc-provider that this plugin uses; the package has no types of its own. Delete it when
// `@types/oidc-provider` is among the dependencies.
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  export interface Grant {
    addOIDCScope(scope: string): void
    addResourceScope(resource: string, scope: string): void
    save(): Promise<string>
  }

  export interface Interaction {
    readonly uid: string
    readonly grantId?: string
    readonly session?: { readonly accountId: string }
    readonly params: Readonly<Record<string, unknown>>
  }

  export interface Client {
    readonly clientId: string
    readonly clientName?: string
  }

  export default class Provider {
    constructor(issuer: string, configuration: object)
    readonly issuer: string
    proxy: boolean
    readonly Grant: {
      new (of: { accountId: string; clientId: string }): Grant
      find(id: string): Promise<Grant | undefined>
    }
    readonly Client: { find(id: string): Promise<Client | undefined> }
    callback(): (req: IncomingMessage, res: ServerResponse) => Promise<void>
    interactionDetails(req: IncomingMessage, res: ServerResponse): Promise<Interaction>
    interactionFinished(req: IncomingMessage, res: ServerResponse, result: object): Promise<void>
    on(event: 'server_error', listener: (ctx: { path: string }, error: Error) => void): this
  }

  export const errors: {
    readonly InvalidTarget: new (description?: string) => Error
    readonly InvalidClientMetadata: new (description: string) => Error
    readonly SessionNotFound: new (description?: string) => Error
  }
}
