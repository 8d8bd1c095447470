// The view of a running host for operators: the services of the host, and those of the program that runs it.
import type { InspectedAddress } from './access/inspect-access.ts'
import type { HttpServerFactory } from './http/create-server.ts'
import type { Path } from './http/errors.ts'
import type { UserName } from './kernel/user.ts'
import type { RouteSummary } from './mcp/routes/route-summary.ts'

/** Services of the program that runs the host, such as the CLI. Plugins declare its members. */
// biome-ignore lint/suspicious/noEmptyInterface: plugins/index.ts declares its members
export interface OperatorProgram {}

/** A log line at level `warn`. Equal lines are one warning with a count. */
export interface KeptWarning {
  readonly message: string
  fields: Readonly<Record<string, unknown>>
  readonly firstAt: number
  lastAt: number
  count: number
}

/** Describes the running host to built-in plugins. Does not bypass access rules. */
export interface Operator {
  readonly routes: readonly (RouteSummary & {
    readonly listen: boolean
    readonly transports: readonly string[]
    readonly authenticators: readonly string[]
  })[]
  inspect(path: string): InspectedAddress | undefined
  /** The served config, with defaults. Contains secrets: see `isSecret`. */
  readonly config: object
  /** True if the value at this path of the config is a secret, by its schema or its name, or is not declared by its plugin. */
  isSecret(path: Path): boolean
  /** Of this process. `waitingBytes`: bytes of responses that clients have not read. */
  readonly traffic: { readonly inFlight: number; readonly streams: number; readonly waitingBytes: number }
  /** The URL that this host listens on. */
  readonly url: string
  readonly plugins: readonly { readonly name: string; readonly routes: readonly string[]; readonly general: boolean }[]
  pseudonymOf(user: UserName): string
  /** Creates servers with the certificate of `http.tls`; undefined without it. */
  readonly createServer: HttpServerFactory | undefined
  readonly warnings: KeptWarnings | undefined
  /** Undefined for an embedded host. */
  readonly program: OperatorProgram | undefined
}

const MAX_WARNINGS = 100

/** Keeps the first 100 distinct warnings for plugins that show them, and counts repetitions. */
export function createKeptWarnings() {
  const kept = new Map<string, KeptWarning>()
  let isBuilt = false
  return {
    list: () => [...kept.values()],
    built() {
      isBuilt = true
    },
    add(fields: object, message: string) {
      const { code, path, upstream = '' } = fields as Readonly<Record<string, unknown>>
      // Clients choose the paths of later warnings.
      const key = isBuilt ? `${code} ${upstream} ${message}` : `${code} ${path} ${message}`
      const now = Date.now()
      const known = kept.get(key)
      if (known) {
        known.fields = { ...fields }
        known.lastAt = now
        known.count++
      } else if (kept.size < MAX_WARNINGS) {
        kept.set(key, { message, fields: { ...fields }, firstAt: now, lastAt: now, count: 1 })
      }
    },
  }
}

export type KeptWarnings = ReturnType<typeof createKeptWarnings>
