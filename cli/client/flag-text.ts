// Messages of the client library for people at a terminal: flags of `mcp-host login` for the options of `createAuthFetch`.
import { type AuthError, type Setting, settingText } from '../../client/errors.ts'
import { shellWord } from '../text.ts'

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

export const toFlag = (option: string): string => FLAGS[option] ?? `${option} of createAuthFetch`

const OTHERS = [
  'authServerSelector',
  'scopeSelector',
  'dynamicClientRegistration(?:\\.\\w+)?',
  'clientAuthentication',
  'tokenEndpointAuthMethod',
  'legacyFallback',
]
const NAMES = new RegExp(
  `(?<![\\w.-])\`?(${[...Object.keys(FLAGS).filter(name => /[A-Z]/.test(name)), ...OTHERS].join('|')})\`?(?![\\w.])`,
  'g',
)

function toCommand(setting: Setting): string {
  if ('method' in setting) {
    const { method, url } = setting
    return `mcp-host ${method === 'login' ? `login ${shellWord(url)}` : `logout ${shellWord(url)} --forget-client`}`
  }
  const { option, value } = setting
  const flag = FLAGS[option]
  if (option === 'resourceIndicator' && value === 'omit') return 'log in with --no-resource'
  if (option === 'serverUrl') return `mcp-host login ${shellWord(String(value))}`
  if (flag === undefined) return `${settingText(setting)} in createAuthFetch`
  const values = typeof value === 'object' && !Array.isArray(value) ? Object.entries(value ?? {}) : [value].flat()
  return `log in with ${values.map(item => `${flag} ${shellWord([item].flat(2).join('='))}`).join(' ')}`
}

export const withFlags = ({ message, setting }: AuthError): string =>
  (setting === undefined ? message : message.replace(settingText(setting), () => toCommand(setting))).replace(
    NAMES,
    (_, name: string) => toFlag(name),
  )
