// The options --host and --port, which replace `http.host` and `http.port` of the config.
import type { LoadedConfig } from '../core/config/load-config.ts'
import { isObject } from '../core/plugin.ts'
import type { ListenValues } from './command.ts'
import { usage } from './context.ts'

/** Throws a StartError (exit code 2) for an invalid port. */
export function listenOn({ host, port }: ListenValues): (loaded: LoadedConfig) => LoadedConfig {
  if (port !== undefined && !(/^\d{1,5}$/.test(port) && Number(port) <= 65_535)) {
    throw usage('--port must be a number from 0 to 65535')
  }
  const given = { ...(host !== undefined && { host }), ...(port !== undefined && { port: Number(port) }) }
  return loaded => {
    const { config } = loaded
    if (!isObject(config) || Object.keys(given).length === 0) return loaded
    const { http = {} } = config
    // The check of the config reports an invalid `http`.
    return isObject(http) ? { ...loaded, config: { ...config, http: { ...http, ...given } } } : loaded
  }
}
