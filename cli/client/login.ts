// `mcp-host login`: obtains a token for a protected server and stores it encrypted for other commands.

import { resolve } from 'node:path'
import { isLoopback, RESERVED_PARAMETERS } from '../../client/resolve-options.ts'
import { defined, isScope, printable } from '../../client/text.ts'
import { type CommandOptionTable, type CommandValues, defineCommand, readSeconds } from '../command.ts'
import { type CommandContext, usage } from '../context.ts'
import { localTime } from '../text.ts'
import { openAccounts } from './account.ts'
import { findSecret, readKeyFile, SECRET_VARIABLE } from './credentials.ts'
import { createHeaders, HTTP_OPTIONS, type HttpOptions, readHttpOptions } from './http-flags.ts'
import { logIn } from './login-flow.ts'
import { checkServerUrl, type GrantName, type Login, PROFILE_OPTION, type ServerSettings } from './stored-logins.ts'
import { interruptible } from './terminal.ts'

const SETTINGS = {
  resource: { value: '<uri>', help: 'Resource to request a token for; auto uses the metadata of the server' },
  'no-resource': { help: 'Send no resource parameter, for servers that reject it' },
  'resource-match': {
    choices: ['exact-or-origin', 'path-prefix'],
    help: 'path-prefix: also accept metadata of a parent path',
  },
  'issuer-match': { choices: ['exact', 'ignore-trailing-slash'], help: 'Comparison of issuers [exact]' },
  'trusted-issuer': {
    value: '<listed=issuer>',
    multiple: true,
    help: 'Accept this issuer for the authorization server that is listed differently; repeatable',
  },
  'assume-pkce': {
    value: '<issuer>',
    multiple: true,
    help: 'Use PKCE with S256 at this issuer although its metadata does not list it; repeatable',
  },
  'token-endpoint': { value: '<url>', help: 'Token endpoint; auto uses the metadata of the server' },
  'authorize-param': {
    value: '<name=value>',
    multiple: true,
    help: 'Extra parameter of the authorization request, such as audience=...; repeatable',
  },
  'allow-host': {
    value: '<host>',
    multiple: true,
    help: 'Allow the server to refer to this host in a private network; repeatable',
  },
} as const satisfies CommandOptionTable

function readPair(option: string, text: string, example: string): readonly [string, string] {
  const at = text.indexOf('=')
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
  throw usage(`--${option} is ${JSON.stringify(text)}; write it as ${example}`)
}

function readParameter(text: string): readonly [string, string] {
  const pair = readPair('authorize-param', text, 'audience=value')
  if (!RESERVED_PARAMETERS.includes(pair[0])) return pair
  const instead = { scope: '; give --scope', resource: '; give --resource' }[pair[0]] ?? ''
  throw usage(`--authorize-param cannot set ${pair[0]}, which the client sets itself${instead}`)
}

function readTrustedIssuers(texts: readonly string[]): Record<string, string[]> {
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
  throw usage('--token-endpoint is auto or an https URL (http on loopback) without user and fragment')
}

function readResource(values: CommandValues<typeof SETTINGS>): string | undefined {
  const { resource, 'no-resource': none } = values
  if (none && resource !== undefined) throw usage('--resource and --no-resource cannot be combined')
  if (none) return 'omit'
  if (resource === undefined || resource === 'auto') return resource
  if (URL.canParse(resource) && !resource.includes('#')) return resource
  throw usage(`--resource is ${JSON.stringify(resource)}; give an absolute URI without a fragment, or auto`)
}

function readSettings(values: CommandValues<typeof SETTINGS>, before: ServerSettings | undefined): ServerSettings {
  const trusted = values['trusted-issuer']
  const parameters = values['authorize-param']?.map(readParameter)
  const hosts = values['allow-host']
  const now = defined({
    resourceIndicator: readResource(values),
    resourceMatch: values['resource-match'],
    issuerMatch: values['issuer-match'],
    trustedIssuers: trusted && readTrustedIssuers(trusted),
    assumePkceS256: values['assume-pkce'],
    tokenEndpoint: readTokenEndpoint(values['token-endpoint']),
    additionalAuthorizationParameters: parameters && Object.fromEntries(parameters),
    networkPolicy: hosts && { allowHosts: hosts },
  })
  const { tokenEndpoint, ...settings } = { ...before, ...now } as ServerSettings
  return { ...settings, ...(tokenEndpoint !== undefined && tokenEndpoint !== 'auto' && { tokenEndpoint }) }
}

export const LOGIN_OPTIONS = {
  ...PROFILE_OPTION,
  scope: { value: '<scope>', multiple: true, help: 'Request this scope instead of the suggested ones; repeatable' },
  'add-scope': { value: '<scope>', multiple: true, help: 'Request this scope in addition; repeatable' },
  'client-id': { value: '<id>', help: 'Client id that was registered before [automatic registration]' },
  'client-issuer': {
    value: '<url>',
    help: 'Issuer that registered the client; required with a secret, which is sent to this issuer only',
  },
  'client-metadata': { value: '<url>', help: 'URL of a client id metadata document, if the server supports it' },
  'client-secret-file': {
    value: '<file>',
    help: `File with the client secret, - for stdin [environment variable ${SECRET_VARIABLE}]`,
  },
  'private-key-file': {
    value: '<file>',
    help: 'File with the private key of the client (PEM or JWK), for private_key_jwt',
  },
  grant: {
    choices: ['authorization_code', 'device', 'client_credentials'],
    help: 'Grant type; client_credentials is for programs without a user [authorization_code]',
  },
  device: { help: 'Log in on another device, like --grant device' },
  'no-browser': { help: 'Print the URL and read the callback URL that you paste' },
  'redirect-host': { choices: ['127.0.0.1', 'localhost', '::1'], help: 'Host of the redirect URI [127.0.0.1]' },
  'redirect-port': { value: '<port>', help: 'Port of the redirect URI [any free port]' },
  'callback-path': { value: '<path>', help: 'Path of the redirect URI [/callback]' },
  'login-timeout': { value: '<seconds>', help: 'Time to wait for the login [300]' },
  ...SETTINGS,
  ...HTTP_OPTIONS,
} as const

type LoginValues = CommandValues<typeof LOGIN_OPTIONS>

function readGrant({ grant, device }: LoginValues): GrantName | undefined {
  if (device && grant !== undefined && grant !== 'device')
    throw usage(`--device and --grant ${grant} cannot be combined`)
  if (device) return 'device'
  return grant
}

function readPort(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const port = Number(text)
  if (/^\d+$/.test(text) && port > 0 && port < 65_536) return port
  throw usage('--redirect-port is a port from 1 to 65535')
}

/** The path is sent and registered literally, so a path that URL normalisation would change is refused. */
function readPath(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const base = 'http://localhost'
  const isPlain = /^\/(?!\/)/.test(text) && URL.canParse(base + text) && new URL(base + text).href === base + text
  if (isPlain && !/[?#]/.test(text)) return text
  throw usage(`--callback-path is ${JSON.stringify(text)}; give a plain path that begins with /, such as /callback`)
}

function readIssuer(text: string | undefined): string | undefined {
  if (text === undefined || URL.canParse(text)) return text
  throw usage(`--client-issuer is ${JSON.stringify(text)}; give the issuer's whole URL, as in its metadata`)
}

/** Another client id or document replaces the client of an earlier login, and a new key replaces its secret. */
function readIdentity({ cwd }: CommandContext, values: LoginValues, before: Login | undefined) {
  const { 'client-id': givenId, 'client-metadata': document, 'private-key-file': keyFile } = values
  const file = values['client-secret-file']
  const issuer = readIssuer(values['client-issuer'])
  if (givenId !== undefined && document !== undefined)
    throw usage('--client-id and --client-metadata cannot be combined')
  if (issuer !== undefined && (givenId ?? before?.clientId) === undefined)
    throw usage('--client-issuer needs --client-id')
  const previous = givenId === undefined && document === undefined ? before : undefined
  const clientId = givenId ?? previous?.clientId
  if (clientId === undefined && document === undefined && (file ?? keyFile) !== undefined)
    throw usage(`--${file === undefined ? 'private-key' : 'client-secret'}-file needs --client-id`)
  const { secret, secretFile, privateKeyFile } = (file ?? keyFile) === undefined ? (previous ?? {}) : {}
  return {
    clientId,
    clientIssuer: issuer ?? (clientId === before?.clientId ? before?.clientIssuer : undefined),
    clientMetadataDocumentUri: document ?? previous?.clientMetadataDocumentUri,
    secret,
    secretFile: file === undefined ? secretFile : file === '-' ? undefined : resolve(cwd, file),
    privateKeyFile: keyFile === undefined ? privateKeyFile : resolve(cwd, keyFile),
  }
}

function readScopes(option: string, texts: readonly string[] | undefined): string[] | undefined {
  const scopes = texts?.flatMap(text => text.split(/\s+/).filter(Boolean))
  const wrong = scopes?.find(scope => !isScope(scope))
  if (wrong === undefined) return scopes
  throw usage(`--${option} is ${JSON.stringify(wrong)}; a scope is one word without quotes or backslashes (RFC 6749)`)
}

function readAddedScopes(values: LoginValues, before: Login | undefined): string[] | undefined {
  const previousScopes = values.scope === undefined ? (before?.addedScopes ?? []) : []
  const all = new Set([...previousScopes, ...(readScopes('add-scope', values['add-scope']) ?? [])])
  return all.size > 0 ? [...all] : undefined
}

export function readLogin(
  context: CommandContext,
  url: string,
  values: LoginValues,
  before: Login | undefined,
  http: HttpOptions,
): Login {
  const grant = readGrant(values) ?? before?.grant ?? 'authorization_code'
  const scopes = readScopes('scope', values.scope)
  const proxy = http.proxy ?? before?.proxy
  const { headerFiles } = http.headerFiles.length > 0 ? http : (before ?? {})
  const settings = readSettings(values, before?.ways)
  const login: Login = {
    v: 1,
    url: before?.url ?? url,
    profile: values.profile,
    grant,
    ...readIdentity(context, values, before),
    scopes: scopes ?? before?.scopes,
    addedScopes: readAddedScopes(values, before),
    headerFiles,
    proxy: proxy === 'none' ? undefined : proxy,
    ways: Object.keys(settings).length > 0 ? settings : undefined,
    redirectHost: values['redirect-host'] ?? before?.redirectHost,
    redirectPort: readPort(values['redirect-port']) ?? before?.redirectPort,
    redirectPath: readPath(values['callback-path']) ?? before?.redirectPath,
  }
  if (grant === 'client_credentials' && login.clientId === undefined) {
    throw usage('the grant client_credentials needs --client-id of a registered client')
  }
  return login
}

/** Returns a non-zero exit code if a requested scope was not granted. The login is stored in both cases. */
function warnRefused(
  granted: string | undefined,
  { scopes = [], addedScopes = [] }: Login,
  values: LoginValues,
  { say }: CommandContext,
): number {
  const refused = findNotGranted(granted, [...scopes, ...addedScopes])
  if (refused.length === 0) return 0
  const advice = 'the login is saved without them; ask the operator of the server for access'
  say(`mcp-host: the server did not grant ${refused.join(', ')}: ${advice}`)
  const named = [...(readScopes('scope', values.scope) ?? []), ...(readScopes('add-scope', values['add-scope']) ?? [])]
  return named.some(scope => refused.includes(scope)) ? 1 : 0
}

function findNotGranted(granted: string | undefined, requested: readonly string[]): string[] {
  const got = new Set(granted?.split(' '))
  // Many servers do not list `offline_access` among the granted scopes.
  return [...new Set(requested)].filter(scope => scope !== 'offline_access' && !got.has(scope))
}

const SECRET_FIX = `other programs can read arguments; set ${SECRET_VARIABLE}, or use --client-secret-file <file> (- for stdin)`

export const SECRET_ARGUMENT_FIX = {
  'client-secret': SECRET_FIX,
  secret: SECRET_FIX,
  'private-key': 'give --private-key-file <file>',
  token: 'login obtains tokens and accepts none; to check a token that you have, use doctor --token',
} as const

export const loginCommand = defineCommand({
  summary: 'Log in to a protected server; other commands reuse this login',
  example: 'https://mcp.example/mcp',
  positionals: ['URL'],
  options: LOGIN_OPTIONS,
  instead: SECRET_ARGUMENT_FIX,
  notes: `Options are saved for the URL and profile. Secrets and headers are not saved; of files, only the name. Tokens are stored encrypted in $MCP_HOST_HOME/tokens [~/.config/mcp-host/tokens]. The environment variable BROWSER selects the browser.`,
  async run(values, [address = ''], context) {
    const url = checkServerUrl(address)
    const http = readHttpOptions(context, values)
    if (createHeaders(context, http, {}).has('authorization')) throw usage('--header Authorization replaces a login')
    const timeout = readSeconds('login-timeout', values['login-timeout'])
    const accounts = openAccounts(context, http)
    const login = readLogin(context, url, values, await accounts.logins.find(url, values.profile), http)
    const { privateKeyFile } = login
    const clientSecret = await findSecret(context, login, values['client-secret-file'])
    const credentials = {
      ...(clientSecret !== undefined && { clientSecret }),
      ...(privateKeyFile !== undefined && { privateKey: readKeyFile(context, privateKeyFile) }),
    }
    const about: Login = { ...login, ...(clientSecret !== undefined && { secret: true }) }
    const status = await interruptible(context, signal =>
      logIn(accounts, about, { credentials, browser: !values['no-browser'], signal, timeout }),
    )
    if (!status) {
      context.print(`${login.url} does not require a login`)
      return 0
    }
    const { issuer, clientId, scope, expiresAt, refreshable } = status
    const scopes = scope ? `scopes ${scope}` : 'no scopes named'
    const until = expiresAt === undefined ? 'until it is revoked' : `until ${localTime(expiresAt)}`
    const end = refreshable ? `${until}, then refreshed automatically` : until
    context.print(printable(`logged in at ${issuer} as client ${clientId}, ${scopes}, ${end}`))
    return warnRefused(scope, login, values, context)
  },
})
