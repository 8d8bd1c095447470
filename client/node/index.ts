// The entry `mcp-host/client/node`: browser, loopback listener, files and proxy.
export {
  type CachedLogin,
  createFileTokenCache,
  type FileTokenCache,
  type FileTokenCacheOptions,
} from './file-cache.ts'
export { createGuardedFetch, type GuardedFetchOptions } from './guarded-fetch.ts'
export { createLoopbackRedirect, type LoopbackRedirect, type LoopbackRedirectOptions } from './loopback.ts'
export { openBrowser } from './open-browser.ts'
export { createProxyFetch, type ProxyFetchOptions } from './proxy-fetch.ts'
