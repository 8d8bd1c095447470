// mcp-host with bearer tokens and a tool policy of 50 rules.
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { mcpHost } from './contestants.ts'
import { type BenchRequest, callEcho } from './requests.ts'
import type { Contestant } from './row.ts'

const ISSUER = 'https://login.example'
const AUDIENCE = 'https://mcp.example'

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

function signToken(key: KeyObject): string {
  const now = Math.floor(Date.now() / 1000)
  const claims = { iss: ISSUER, aud: AUDIENCE, sub: 'bench', scope: 'mcp.tools', iat: now, exp: now + 3_600 }
  const signed = `${encode({ alg: 'RS256', typ: 'at+jwt', kid: 'bench' })}.${encode(claims)}`
  return `${signed}.${sign('sha256', Buffer.from(signed), key).toString('base64url')}`
}

/** Plugin options for bearer tokens. The config contains the issuer key. */
export const BEARER = {
  'auth-jwt': {
    issuer: ISSUER,
    audience: AUDIENCE,
    keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'bench', alg: 'RS256', use: 'sig' }],
  },
}

/** 49 rules for other tools, and one that applies to the call. */
const RULES = Object.fromEntries([
  ...Array.from({ length: 49 }, (_, index) => [`other-${index}-*`, 'tools']),
  ['echo*', 'tools'],
])

const withToken: BenchRequest = {
  ...callEcho,
  headers: { ...callEcho.headers, Authorization: `Bearer ${signToken(privateKey)}` },
}

/** Sends the same token with each request, so that the host has it in its cache. */
export const protectedHost = (name: string, plugins: object): Contestant => ({
  ...mcpHost(1, withToken, { plugins: { 'transport-streamable': {}, ...plugins } }, name.replaceAll(' ', '-')),
  name,
})

export const POLICY = { 'tool-policy': { policies: { tools: { scope: 'mcp.tools' } }, rules: RULES } }
