// The flags of `login` for servers that do it their own way: each becomes an option of `createAuthFetch`, and is
// remembered with the login.
import type { ClientOAuthOptions } from '../../client/index.ts'
import { isLoopback, RESERVED_PARAMETERS } from '../../client/resolve-options.ts'
import { StartError } from '../../core/http/errors.ts'
import type { VerbOptionTable, VerbValues } from '../verb.ts'

export const WAY_OPTIONS = {
  resource: { type: 'string', value: '<uri>', help: 'the resource to ask a token for; auto: as the server says' },
  'no-resource': { type: 'boolean', help: 'name no resource, for servers that refuse it' },
  'resource-match': { type: 'string', value: '<how>', help: 'path-prefix: a parent path will do; exact-or-origin' },
  'issuer-match': { type: 'string', value: '<how>', help: 'ignore-trailing-slash: of the issuer; exact' },
  'trusted-issuer': {
    type: 'string',
    value: '<listed=issuer>',
    multiple: true,
    help: 'the server that is listed so is known to publish that issuer; may be repeated',
  },
  'assume-pkce': {
    type: 'string',
    value: '<issuer>',
    multiple: true,
    help: 'this issuer does PKCE with S256 and does not say so; may be repeated',
  },
  'token-endpoint': {
    type: 'string',
    value: '<url>',
    help: "get tokens at this address instead of the one in the server's metadata; auto: as the server says",
  },
  'authorize-param': {
    type: 'string',
    value: '<name=value>',
    multiple: true,
    help: 'one more parameter of the authorization request, such as audience=...; may be repeated',
  },
  'allow-host': {
    type: 'string',
    value: '<host>',
    multiple: true,
    help: 'the server may send this client to a host inside this network; may be repeated',
  },
} as const satisfies VerbOptionTable

/** As options of `createAuthFetch`. */
export type ServerWays = Pick<
  ClientOAuthOptions,
  | 'resourceIndicator'
  | 'resourceMatch'
  | 'issuerMatch'
  | 'trustedIssuers'
  | 'assumePkceS256'
  | 'tokenEndpoint'
  | 'additionalAuthorizationParameters'
  | 'networkPolicy'
>

const usage = (what: string) => new StartError(what, { exitCode: 2 })

function readPair(option: string, text: string, example: string): readonly [string, string] {
  const at = text.indexOf('=')
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
  throw usage(`--${option} is ${JSON.stringify(text)}; write it as ${example}`)
}

function readChoice<Known extends string>(option: string, text: string | undefined, known: readonly Known[]) {
  if (text === undefined) return undefined
  const choice = known.find(one => one === text)
  if (choice === undefined) throw usage(`--${option} is ${JSON.stringify(text)}; give one of ${known.join(', ')}`)
  return choice
}

function readParameter(text: string): readonly [string, string] {
  const pair = readPair('authorize-param', text, 'audience=value')
  if (!RESERVED_PARAMETERS.includes(pair[0])) return pair
  const instead = { scope: '; give --scope', resource: '; give --resource' }[pair[0]] ?? ''
  throw usage(`--authorize-param may not set ${pair[0]}, which is the client's own${instead}`)
}

/** Issuers hold `=` seldom, and listed servers hardly ever: the first one parts them. */
function readTrusted(texts: readonly string[]): Record<string, string[]> {
  const trusted: Record<string, string[]> = {}
  for (const text of texts) {
    const [listed, issuer] = readPair('trusted-issuer', text, 'https://as.example=https://issuer.example')
    trusted[listed] = [...(trusted[listed] ?? []), issuer]
  }
  return trusted
}

function readTokenEndpoint(text: string | undefined): string | undefined {
  if (text === undefined || text === 'auto') return text
  const url = URL.canParse(text) && !text.includes('#') ? new URL(text) : undefined
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname))
  if (url && isSafe && !url.username && !url.password) return text
  throw usage(
    '--token-endpoint is the whole https address (http on this machine alone) without user or fragment, or auto',
  )
}

function readResource(values: VerbValues<typeof WAY_OPTIONS>): string | undefined {
  const { resource, 'no-resource': none } = values
  if (none && resource !== undefined) throw usage('--resource and --no-resource exclude each other')
  if (none) return 'omit'
  if (resource === undefined || resource === 'auto') return resource
  if (URL.canParse(resource) && !resource.includes('#')) return resource
  throw usage(`--resource is ${JSON.stringify(resource)}; give an absolute URI without a fragment, or auto`)
}

const given = <T extends object>(ways: T): T =>
  Object.fromEntries(Object.entries(ways).filter(([, value]) => value !== undefined)) as T

/** What was said now, else what was said before; each flag by itself. */
export function readWays(values: VerbValues<typeof WAY_OPTIONS>, before: ServerWays | undefined): ServerWays {
  const trusted = values['trusted-issuer']
  const parameters = values['authorize-param']?.map(readParameter)
  const hosts = values['allow-host']
  const now = given({
    resourceIndicator: readResource(values),
    resourceMatch: readChoice('resource-match', values['resource-match'], ['exact-or-origin', 'path-prefix']),
    issuerMatch: readChoice('issuer-match', values['issuer-match'], ['exact', 'ignore-trailing-slash']),
    trustedIssuers: trusted && readTrusted(trusted),
    assumePkceS256: values['assume-pkce'],
    tokenEndpoint: readTokenEndpoint(values['token-endpoint']),
    additionalAuthorizationParameters: parameters && Object.fromEntries(parameters),
    networkPolicy: hosts && { allowHosts: hosts },
  })
  const { tokenEndpoint, ...ways } = { ...before, ...now } as ServerWays
  return { ...ways, ...(tokenEndpoint !== undefined && tokenEndpoint !== 'auto' && { tokenEndpoint }) }
}
