// A host as programs have it, and what a reload of it works on. Made in host.ts.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { InspectedAddress } from './access/inspect-access.ts'
import type { BuiltServices } from './assembly.ts'
import type { FilledConfig } from './config/define-config.ts'
import type { LoadedConfig } from './config/load-config.ts'
import type { GivenSecrets } from './given-secrets.ts'
import type { HostTls } from './http-tls.ts'
import type { Ending } from './kernel/ending.ts'
import type { Logger } from './kernel/log.ts'
import type { PluginInstance } from './kernel/plugin-plan.ts'
import type { Secrets } from './kernel/secrets.ts'
import type { KernelNotes } from './kernel/set-up.ts'
import type { Definition, RuntimeHost } from './mcp/define.ts'
import type { RouteSummary } from './mcp/route-summary.ts'
import type { CompiledRoute } from './mcp/routes.ts'
import type { ReloadReport } from './reload-report.ts'
import type { Surface } from './surface/surface.ts'

/** A host, and what a reload works on. */
export interface BuiltHost {
  readonly host: Omit<Host, 'reload'>
  readonly parts: HostParts
}

/** What a reload compares and replaces. */
export interface HostParts extends Pick<BuiltServices, 'catalog' | 'offered' | 'combinations' | 'review'> {
  readonly config: FilledConfig
  readonly instances: readonly PluginInstance[]
  readonly routes: readonly CompiledRoute[]
  readonly toolsets: ReadonlyMap<string, readonly Definition[]>
  /** What plugins are told of `server`. */
  readonly server: { name: string; version: string }
  readonly reconfigure: KernelNotes['reconfigure']
  readonly secrets: Secrets & Pick<GivenSecrets, 'isOfFile'>
  readonly log: Logger
  readonly tls: HostTls | undefined
}

export interface Host extends Ending {
  /** `http://address:port` once it listens, `https` with `http.tls`. */
  readonly url: string
  readonly routes: readonly RouteSummary[]
  readonly runtime: RuntimeHost
  /** What it serves, by route: what `mcp-host lock` writes down. With what was added while it runs. */
  surface(): Promise<Surface>
  /**
   * Runs what plugins start before the host listens, once; `listen` does it too. Rejects with a StartError once it
   * closes.
   */
  start(): Promise<void>
  /** Who may do what at a path, decided without a request; undefined where nothing is served. */
  inspect(path: string): InspectedAddress | undefined
  /** Resolves once requests are accepted. Rejects with a StartError, for a busy port too. */
  listen(): Promise<void>
  /**
   * Takes a newer version of its config, all of it or nothing: built anew and checked beside the running one first, then
   * switched to at once. Sessions, streams and running calls go on; who is served other lists than before is told. What can
   * be taken only at a restart is named in the report, and then nothing was. Rejects with a StartError for a config that
   * could not be started. One at a time: each waits for the one before.
   */
  reload(loaded: LoadedConfig): Promise<ReloadReport>
  /**
   * Answers requests of a server of your own, in the place of `listen`: call `start` before the first, which is 503
   * without, and `close` at the end. Routes are looked up by `req.url`, so a prefix that is stripped before belongs into
   * `http.publicUrl`, which must be set (else a StartError). Nothing may read the body before. The promise resolves when
   * the answer is given, or its stream is open.
   */
  callback(): (req: IncomingMessage, res: ServerResponse) => Promise<void>
  /** From now on its port keeps no process alive, nor do its connections. */
  unref(): void
}
