// The config functions `configureSession` and `runSession`, which customize the offer to each caller.
import type { IncomingHttpHeaders } from 'node:http'
import type { User } from '../../kernel/user.ts'
import type { Definition } from '../definitions/define.ts'
import type { Implementation, ServerCapabilities } from '../wire/protocol.ts'

/** The config's `server`: its name and version for clients. */
export interface ServerSettings extends Implementation {
  /** Instructions for the model on how to use this server. */
  instructions?: string
}

/** The request that `configureSession` and `runSession` receive. */
export interface SessionRequest {
  /** The headers of the request that opens the session; without credentials if another node restores it. */
  readonly headers: Readonly<IncomingHttpHeaders>
  readonly user: User | undefined
  readonly route: { readonly path: string; readonly params: Readonly<Record<string, string>> }
  /** The caller's IP address; behind a trusted proxy, the forwarded one. */
  readonly ip: string
}

/** Settings that `configureSession` can change for a session or, without sessions, a request. */
export interface SessionOptions {
  /** Undefined without a session. */
  readonly id: string | undefined
  /** Name and version for clients; assign to change. */
  server: ServerSettings
  /** Merged over the capabilities derived from the definitions. */
  capabilities: ServerCapabilities
  readonly toolsets: readonly string[]
  /** Adds a configured toolset. Throws for an unknown name or a conflict, such as a duplicate tool name. */
  addToolset(name: string): void
  removeToolset(name: string): void
  /** Adds definitions. Pass the same objects each time: views are cached by them. Throws for conflicts. */
  add(...definitions: Definition[]): void
}

/** Customizes the offer to one caller. An error refuses the session or request. */
export type ConfigureSession = (
  request: SessionRequest,
  session: SessionOptions,
  context: { readonly signal: AbortSignal },
) => void | Promise<void>

/** Runs around a session. It must call `run`, which resolves when the session ends. */
export type RunSession = (
  request: SessionRequest,
  session: {
    readonly id: string | undefined
    /** True if the session continues after its node failed. */
    readonly restored: boolean
  },
  run: () => Promise<void>,
  context: { readonly signal: AbortSignal },
) => void | Promise<void>

export interface LiveConfig {
  now: {
    readonly server: ServerSettings
    readonly configureSession?: ConfigureSession
    readonly runSession?: RunSession
  }
  reloads: number
}
