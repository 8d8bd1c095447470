// The resolved `http` section of the config.

/** Includes all defaults. Sizes are in bytes, durations in milliseconds. */
export interface ResolvedHttp {
  readonly host: string
  readonly port: number
  readonly backlog: number
  readonly publicUrl: string | undefined
  readonly tls: boolean
  readonly maxBodySize: number
  readonly keepAliveTimeout: number
  readonly requestTimeout: number
  readonly writeTimeout: number
  readonly allowedHosts: readonly string[]
  readonly allowedOrigins: readonly string[]
  /** Number of proxies, or their addresses. */
  readonly trustProxy: false | number | readonly string[]
}
