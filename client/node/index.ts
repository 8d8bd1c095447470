// The entry `mcp-host/client/node`: browser, loopback listener, files and proxy.
export { createFileTokenCache } from './file-cache.ts'
export { createGuardedFetch } from './guarded-fetch.ts'
export { createLoopbackRedirect } from './loopback.ts'
export { openBrowser } from './open-browser.ts'
export { createProxyFetch } from './proxy-fetch.ts'
