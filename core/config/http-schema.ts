// The config's `http` as JSON Schema, and the patterns of URLs. For host-schema.ts.
import { SIZE_PATTERN } from '../mcp/units.ts'
import { httpTls } from './http-tls-schema.ts'
import { closed, duration, flag, list, text } from './schema-parts.ts'

/** An absolute http(s) URL without user, query or fragment, and without characters of placeholders such as `{tenant}`. */
export const HTTP_URL_PATTERN = '^https?://(?!:)[^/?#@\\s{}<>*]+(/[^?#\\s{}<>]*)?$'
/** The same, with an optional query. Credentials have keys of their own. */
export const ENDPOINT_URL_PATTERN = `${HTTP_URL_PATTERN.slice(0, -1)}(\\?[^#\\s]*)?$`

/** `openid-configuration` or `oauth-authorization-server`. */
const DISCOVERY = '/\\.well-known/o'
const ENDPOINT = '/(authorize|token|jwks|certs)(\\.json)?$'
/** Not issuers: an issuer of Microsoft contains a tenant, and an issuer of Auth0 ends with a slash. */
const INCOMPLETE =
  'https://login\\.microsoftonline\\.com(/?$|/(common|organizations|consumers)(/|$))|https://[^/]+\\.auth0\\.com$'
/** The URL of an issuer, not of its discovery document or of an endpoint. */
export const ISSUER_URL = {
  pattern: `^(?!.*(/\\.well-known/|${ENDPOINT}))(?!${INCOMPLETE})${HTTP_URL_PATTERN.slice(1)}`,
} as const
/** The URL of a key set, not of a discovery document. */
export const KEYS_URL = {
  pattern: `^(?!.*${DISCOVERY})${ENDPOINT_URL_PATTERN.slice(1)}`,
} as const
/** The audience or issuer of a token: any text except the URL of a metadata document. */
export const IDENTIFIER = {
  pattern: '^(?!https?://.*/\\.well-known/)',
} as const
/** The listen address of a server. */
export const LISTEN_ADDRESS = {
  pattern:
    '^((?=.*[^\\d.])[^\\s/:*]+|((25[0-5]|2[0-4]\\d|1?\\d?\\d)(\\.(?=\\d)|$)){4}|\\[?(?=.*:)[0-9A-Fa-f:.]+(%[^\\s/]+)?\\]?)$',
  patternErrorMessage: 'an address or a name, without scheme and port',
} as const

export const http = closed(
  {
    host: text('Address to listen on.', {
      default: '127.0.0.1',
      ...LISTEN_ADDRESS,
    }),
    port: {
      type: 'integer',
      minimum: 0,
      maximum: 65_535,
      default: 3000,
      description: 'Port to listen on; 0 selects a free port.',
    },
    backlog: {
      type: 'integer',
      minimum: 1,
      maximum: 65_535,
      // The default system limit of Linux since 5.4.
      default: 4096,
      description: 'Connections that can wait to be accepted. The system limit (net.core.somaxconn) also applies.',
    },
    tls: httpTls,
    publicUrl: text('How clients reach this host; metadata, challenges and the guard use it.', {
      format: 'uri',
      pattern: `^(?!https?://(0\\.0\\.0\\.0|\\[::\\])(:|/|$))${HTTP_URL_PATTERN.slice(1)}`,
      patternErrorMessage:
        "an absolute http(s) URL for clients, not 0.0.0.0 or [::], such as 'https://mcp.acme.example'",
      examples: ['https://mcp.acme.example'],
    }),
    maxBodySize: {
      type: ['string', 'number'],
      pattern: SIZE_PATTERN,
      // Every MCP request is larger.
      minimum: 100,
      default: '4mb',
      description: 'Maximum request body: bytes, or a number with b, kb, mb or gb. A larger body gets 413.',
    },
    keepAliveTimeout: duration('How long an idle connection is kept.', { default: '5s' }),
    requestTimeout: duration('How long receiving one request can take. It does not limit calls and streams.', {
      default: '60s',
    }),
    writeTimeout: duration('How long a client can take to read a response, or the events that are queued for it.', {
      default: '30s',
    }),
    allowedHosts: list(
      text('A host name, with or without port.', {
        pattern: '^([^\\s/?#@:*\\[\\]]+|\\[[0-9A-Fa-f:.]+\\])(:([1-5]?\\d{1,4}|6[0-5]\\d{3}))?$',
        patternErrorMessage: "a host name such as 'mcp.acme.example', without scheme, path and wildcard",
      }),
      "Accepted host names, in addition to publicUrl's and, on a loopback bind, loopback names.",
      { default: [] },
    ),
    allowedOrigins: list(
      text('An origin.', {
        pattern: '^(null|[A-Za-z][A-Za-z0-9+.-]*://[^/?#@*\\s]+(/[^?#\\s]*)?)$',
        patternErrorMessage: "an origin such as 'https://app.acme.example', without wildcard",
        examples: ['https://app.acme.example'],
      }),
      "Accepted origins of web pages, in addition to publicUrl's and, on a loopback bind, loopback origins.",
      { default: [] },
    ),
    trustProxy: {
      anyOf: [
        flag('True: one proxy.'),
        { type: 'integer', minimum: 1, maximum: 32, description: 'Number of proxies in front of the host.' },
        list(text('An address, a range such as 10.0.0.0/8, or loopback, linklocal, uniquelocal.'), 'Their addresses.', {
          minItems: 1,
        }),
      ],
      default: false,
      description: 'Trusted proxies in front of the host, whose X-Forwarded-For and X-Forwarded-Host are used.',
      examples: [1, ['10.0.0.0/8']],
    },
  },
  { title: 'HttpSettings', default: {}, description: 'Where and how this host listens.' },
)
