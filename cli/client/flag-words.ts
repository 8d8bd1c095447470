// Says what the client's errors say in the words of the command line: flags of `mcp-host login` where they name options
// of `createAuthFetch`. What no flag can do is said to be for programs.

const quoted = (text: string) => text.replace(/^["']|["']$/g, '')

/** Whole phrases first, then what is left of the names. Each is replaced wherever it stands. */
const PHRASES: readonly (readonly [RegExp, string | ((...found: string[]) => string)])[] = [
  [/set issuerMatch: '([\w-]+)'/g, 'log in with --issuer-match $1'],
  [
    /set trustedIssuers: \{ ("[^"]*"): \[("[^"]*")\] \}/g,
    (_, listed = '', issuer = '') => `log in with --trusted-issuer '${quoted(listed)}=${quoted(issuer)}'`,
  ],
  [/set assumePkceS256: \[("[^"]*")\]/g, (_, issuer = '') => `log in with --assume-pkce '${quoted(issuer)}'`],
  [/set resourceMatch: '([\w-]+)'/g, 'log in with --resource-match $1'],
  [/set resourceIndicator to "omit" or to what it wants/g, 'log in with --no-resource, or --resource <what it wants>'],
  [/see `resourceIndicator`/g, 'log in with --no-resource, or --resource <what it wants>'],
  [/ask for other scopes with `scopes` or `scopeSelector`/g, 'ask for others with --scope'],
  [/ask for less with `scopes`/g, 'ask for less with --scope'],
  [/list "([^"]*)" in networkPolicy\.allowHosts/g, 'log in with --allow-host $1'],
  [/set a longer loginTimeoutMs/g, 'give it longer with --login-timeout <seconds>'],
  [/drop its registration: session\.forgetClient\(\)/g, 'drop its registration: mcp-host logout <URL> --forget-client'],
  [/set dynamicClientRegistration\.initialAccessToken, or register/g, 'register'],
  [
    /set dynamicClientRegistration\.initialAccessToken to a valid one/g,
    'register a client by hand, and give --client-id',
  ],
  [
    /set clientId \(and clientSecret\) as the server issued them, or clientMetadataDocumentUri/g,
    'give --client-id (and --client-secret-file) as the server issued them, or --client-metadata',
  ],
  [
    /check clientId, clientSecret \(or privateKey\) and tokenEndpointAuthMethod/g,
    'check --client-id and the secret or key',
  ],
  [
    /set its clientId, clientSecret and clientIssuer/g,
    'log in with its --client-id, --client-secret-file and --client-issuer',
  ],
  [/and set clientId, with privateKey for private_key_jwt/g, 'and give --client-id, with --private-key-file'],
  [/(?:and )?set clientId\b/g, 'and give --client-id'],
  [/set privateKey \(PEM, JWK or CryptoKey\)/g, 'give --private-key-file'],
  [
    /set clientSecret or tokenEndpointAuthMethod, or do it yourself in clientAuthentication/g,
    'give --client-secret-file, or --private-key-file',
  ],
  [
    /use another redirectUri, or another dynamicClientRegistration\.applicationType/g,
    'try --redirect-host localhost, or a --redirect-port',
  ],
  [/or set legacyFallback: true/g, 'or tell its operator'],
  [/(?:such as authorization_code with a redirectUri)/g, 'without --device'],
  [/use another `grant`/g, 'use another --grant'],
  [/another grant\b/g, 'another --grant'],
  [/ \(session\.login\(\)\)/g, ''],
  [/with session\.login\(\) or: /g, 'with: '],
]

/** Options that may be left in a text, and the flag of `login` for each. */
const FLAGS: Readonly<Record<string, string | undefined>> = {
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

/** The flag for an option. */
export const flagOf = (option: string): string => FLAGS[option] ?? `${option} of createAuthFetch`

/** Of these no flag says anything. */
const FOR_PROGRAMS =
  /\b(authServerSelector|scopeSelector|dynamicClientRegistration(?:\.\w+)?|clientAuthentication|tokenEndpointAuthMethod|legacyFallback|dpop: ?(?:true|false|"auto"))(?![\w.])/g

const NAMES = new RegExp(
  `(?<![\\w-])\`?(${Object.keys(FLAGS)
    .filter(name => /[A-Z]/.test(name))
    .map(name => name.replace('.', '\\.'))
    .join('|')})\`?(?!\\w)`,
  'g',
)

/** A message of the client for somebody at a terminal. */
export function inFlags(message: string): string {
  const phrased = PHRASES.reduce(
    // A function and a text are two overloads of one method.
    (text, [pattern, words]) =>
      typeof words === 'string' ? text.replace(pattern, words) : text.replace(pattern, words),
    message,
  )
  const named = phrased.replace(NAMES, (_, name: string) => flagOf(name))
  return named.replace(FOR_PROGRAMS, 'in a program, $1 of createAuthFetch')
}
