// The config's `http` as the host uses it: what core/config fills in and the pipeline, the server and plugins read.

/** With every default filled in, sizes in bytes and durations in milliseconds. */
export interface ResolvedHttp {
  readonly host: string
  readonly port: number
  /** Connections that may wait to be accepted, as far as the system allows. */
  readonly backlog: number
  readonly publicUrl: string | undefined
  /** The host serves HTTPS. */
  readonly tls: boolean
  readonly maxBodySize: number
  readonly keepAliveTimeout: number
  readonly requestTimeout: number
  readonly writeTimeout: number
  readonly allowedHosts: readonly string[]
  readonly allowedOrigins: readonly string[]
  /** How many proxies stand in front, or their addresses; false: none. */
  readonly trustProxy: false | number | readonly string[]
}
