// Messages of the client library for people at a terminal: flags of `mcp-host login` for the options of `createAuthFetch`.
import { shellWord } from '../text.ts'

/** Whole phrases, whose flags are written in another way than the options. */
const PHRASES: readonly (readonly [pattern: RegExp, words: string | ((...found: string[]) => string)])[] = [
  [/set (issuerMatch|resourceMatch): '([\w-]+)'/g, 'log in with $1 $2'],
  [
    /set trustedIssuers: \{ "([^"]*)": \["([^"]*)"\] \}/g,
    (_, url, issuer) => `log in with trustedIssuers ${shellWord(`${url}=${issuer}`)}`,
  ],
  [/set assumePkceS256: \["([^"]*)"\]/g, (_, issuer) => `log in with assumePkceS256 ${shellWord(issuer ?? '')}`],
  [/list "([^"]*)" in networkPolicy\.allowHosts/g, (_, host) => `log in with --allow-host ${shellWord(host ?? '')}`],
  [/set resourceIndicator to "omit" or to what it wants/g, 'log in with --no-resource, or --resource <what it wants>'],
  [/see `resourceIndicator`/g, 'log in with --no-resource, or --resource <what it wants>'],
  [/drop its registration: session\.forgetClient\(\)/g, 'drop its registration: mcp-host logout <URL> --forget-client'],
  [/ \(session\.login\(\)\)/g, ''],
  [/with session\.login\(\) or: /g, 'with: '],
]

const FLAGS: Readonly<Record<string, string>> = {
  clientId: '--client-id',
  clientSecret: '--client-secret-file',
  clientIssuer: '--client-issuer',
  privateKey: '--private-key-file',
  clientMetadataDocumentUri: '--client-metadata',
  scopes: '--scope',
  issuerMatch: '--issuer-match',
  trustedIssuers: '--trusted-issuer',
  assumePkceS256: '--assume-pkce',
  tokenEndpoint: '--token-endpoint',
  resourceMatch: '--resource-match',
  resourceIndicator: '--resource',
  additionalAuthorizationParameters: '--authorize-param',
  'networkPolicy.allowHosts': '--allow-host',
  loginTimeoutMs: '--login-timeout',
  redirectUri: 'the redirect URI',
  serverUrl: 'the URL',
  grant: '--grant',
}

export const flagOf = (option: string): string => FLAGS[option] ?? `${option} of createAuthFetch`

const OTHERS = [
  'authServerSelector',
  'scopeSelector',
  'dynamicClientRegistration(?:\\.\\w+)?',
  'clientAuthentication',
  'tokenEndpointAuthMethod',
  'legacyFallback',
  'dpop: ?(?:true|false|"auto")',
]
const NAMES = new RegExp(
  `(?<![\\w.-])\`?(${[...Object.keys(FLAGS).filter(name => /[A-Z]/.test(name)), ...OTHERS].join('|')})\`?(?![\\w.])`,
  'g',
)

export const inFlags = (message: string): string =>
  PHRASES.reduce(
    (text, [pattern, words]) =>
      typeof words === 'string' ? text.replace(pattern, words) : text.replace(pattern, words),
    message,
  ).replace(NAMES, (_, name: string) => flagOf(name))
