// The services of the program that runs the host, which the console uses. `cli/console.ts` implements them.
import type { UpstreamState } from '../families/upstream-calls/index.ts'
import type { Caller, ConfigView, ConnectClient, ItemKind, LastReload, LockState, SurfaceItem } from './api.ts'

export interface ConsoleProgram {
  /** The command that runs this program, such as `npx mcp-host`. */
  readonly command: string
  /** Clients of the command `connect`. */
  readConnectClients(): Promise<readonly ConnectClient[]>
  /** Shows the operator how to open the console. `createLoginUrl` returns a URL for one login. */
  announce(createLoginUrl: () => string): void
  readSurface(
    servers: readonly UpstreamState[],
  ): Promise<{ readonly items: readonly Omit<SurfaceItem, 'limits'>[]; readonly lock: LockState }>
  /** The lines of `mcp-host explain`. */
  explain(of: {
    readonly path: string
    readonly caller: Caller
    readonly kind?: ItemKind
    readonly name?: string
  }): Promise<readonly string[]>
  readConfig(): Promise<Pick<ConfigView, 'file' | 'keys'>>
  /** Undefined if other processes replace this one, and log the result. */
  reload(): Promise<LastReload | undefined>
  /** The latest reload; undefined before the first. */
  lastReload(): LastReload | undefined
}
