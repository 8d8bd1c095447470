// A host that is protected, for rows that ask what that costs: bearer tokens, and a policy of fifty rules.
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { ours } from './contestants.ts'
import { type BenchRequest, callEcho } from './requests.ts'
import type { Contestant } from './row.ts'

const ISSUER = 'https://login.example'
const AUDIENCE = 'https://mcp.example'

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

function tokenOf(key: KeyObject): string {
  const now = Math.floor(Date.now() / 1000)
  const claims = { iss: ISSUER, aud: AUDIENCE, sub: 'bench', scope: 'mcp.tools', iat: now, exp: now + 3_600 }
  const head = `${encode({ alg: 'RS256', typ: 'at+jwt', kid: 'bench' })}.${encode(claims)}`
  return `${head}.${sign('sha256', Buffer.from(head), key).toString('base64url')}`
}

/** Bearer tokens of one issuer, whose key is in the config. */
export const BEARER = {
  'auth-jwt': {
    issuer: ISSUER,
    audience: AUDIENCE,
    keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'bench', alg: 'RS256', use: 'sig' }],
  },
}
/** Forty-nine rules for other tools, and one that this caller meets. */
const RULES = Object.fromEntries([
  ...Array.from({ length: 49 }, (_, index) => [`other-${index}-*`, 'tools']),
  ['echo*', 'tools'],
])

const withToken: BenchRequest = {
  ...callEcho,
  headers: { ...callEcho.headers, Authorization: `Bearer ${tokenOf(privateKey)}` },
}

/** Our host with these plugins, asked with a token that it has seen before. */
export const protectedBy = (name: string, plugins: object): Contestant => ({
  ...ours(1, withToken, { plugins: { 'transport-streamable': {}, ...plugins } }, name.replaceAll(' ', '-')),
  name,
})

/** Fifty rules. */
export const POLICY = { 'tool-policy': { policies: { tools: { scope: 'mcp.tools' } }, rules: RULES } }
