// The entry `mcp-host/client/node`: browser, loopback listener, files and proxy.

export { createGuardedFetch, createProxyFetch } from './fetch.ts'
export { createFileTokenCache } from './file-cache.ts'
export { createLoopbackRedirect } from './loopback.ts'
export { openBrowser } from './open-browser.ts'
