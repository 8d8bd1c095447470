// mcp-host/client on Node.js: logins use a browser and a loopback listener by default.
export * from '../index.ts'
export { createAuthFetch } from './auth-fetch.ts'
