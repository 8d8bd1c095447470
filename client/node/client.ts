// mcp-host/client on Node: the portable client, whose logins have a browser and a listener by default.
export * from '../index.ts'
export { createAuthFetch } from './auth-fetch.ts'
