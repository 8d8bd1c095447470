// The config functions `configureSession` and `runSession`, which change what each caller is offered.
import type { IncomingHttpHeaders } from 'node:http'
import type { User } from '../kernel/user.ts'
import type { Definition } from './define.ts'
import type { Implementation, ServerCapabilities } from './protocol.ts'

/** The config's `server`: its name and version for clients. */
export interface ServerSettings extends Implementation {
  /** For the model: how to use this server. */
  instructions?: string
}

/** The request that `configureSession` and `runSession` receive. */
export interface SessionRequest {
  /** The headers of the request that opens the session; without credentials if another node restores it. */
  readonly headers: Readonly<IncomingHttpHeaders>
  readonly user: User | undefined
  readonly route: { readonly path: string; readonly params: Readonly<Record<string, string>> }
  /** The caller's address; behind a trusted proxy, the one it forwarded. */
  readonly ip: string
}

/** What `configureSession` can change for this session or, without sessions, this request. */
export interface SessionOptions {
  /** Undefined without sessions. */
  readonly id: string | undefined
  /** Name and version as clients see them; assign to change. */
  server: ServerSettings
  /** Merged over what the host derives from the definitions. */
  capabilities: ServerCapabilities
  /** Names of the toolsets in view. */
  readonly toolsets: readonly string[]
  /**
   * Adds a configured toolset. Throws for an unknown name and for a toolset that cannot be served with the toolsets in view,
   * such as one with a tool of the same name: remove the other one first.
   */
  addToolset(name: string): void
  removeToolset(name: string): void
  /**
   * Adds definitions for this session. Pass the same objects each time: the view is cached by them. Throws for definitions
   * that cannot be served with the toolsets in view.
   */
  add(...definitions: Definition[]): void
}

/** The config's `configureSession`: changes what one caller is offered. A throw refuses the session, or the request. */
export type ConfigureSession = (
  request: SessionRequest,
  session: SessionOptions,
  context: { readonly signal: AbortSignal },
) => void | Promise<void>

/** The config's `runSession`: runs around a session, and must call `run`, which resolves when the session is over. */
export type RunSession = (
  request: SessionRequest,
  session: {
    readonly id: string | undefined
    /** True if the session continues after the node that ran it failed. */
    readonly restored: boolean
  },
  run: () => Promise<void>,
  context: { readonly signal: AbortSignal },
) => void | Promise<void>

/** The part of the config that callers are offered. A reload replaces `now`, and counts. */
export interface OfferedConfig {
  now: {
    readonly server: ServerSettings
    readonly configureSession?: ConfigureSession
    readonly runSession?: RunSession
  }
  reloads: number
}
