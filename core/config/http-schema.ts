// The config's `http` as JSON Schema, and the patterns of URLs. For host-schema.ts.
import { SIZE_PATTERN } from '../mcp/units.ts'
import { httpTls } from './http-tls-schema.ts'
import { closed, duration, flag, list, text } from './schema-parts.ts'

/** An absolute http(s) URL without user, query or fragment, and without characters of placeholders such as `{tenant}`. */
export const HTTP_URL_PATTERN = '^https?://(?!:)[^/?#@\\s{}<>*]+(/[^?#\\s{}<>]*)?$'
/** The same, which may have a query. Who is to be asked as somebody is told so in keys of its own. */
export const ENDPOINT_URL_PATTERN = `${HTTP_URL_PATTERN.slice(0, -1)}(\\?[^#\\s]*)?$`

/** `openid-configuration` or `oauth-authorization-server`. */
const DISCOVERY = '/\\.well-known/o'
const ENDPOINT = '/(authorize|token|jwks|certs)(\\.json)?$'
/** Microsoft issues tokens in the name of a tenant only, and the names of Auth0's issuers end in a slash. */
const INCOMPLETE =
  'https://login\\.microsoftonline\\.com(/?$|/(common|organizations|consumers)(/|$))|https://[^/]+\\.auth0\\.com$'
/** The name of an issuer: not the URL of its discovery document or of an endpoint. */
export const ISSUER_URL = {
  pattern: `^(?!.*(/\\.well-known/|${ENDPOINT}))(?!${INCOMPLETE})${HTTP_URL_PATTERN.slice(1)}`,
} as const
/** The URL of a key set: not that of a discovery document. */
export const KEYS_URL = {
  pattern: `^(?!.*${DISCOVERY})${ENDPOINT_URL_PATTERN.slice(1)}`,
} as const
/** Whom a token is for, or who issued it: any text but the URL of a metadata document. */
export const IDENTIFIER = {
  pattern: '^(?!https?://.*/\\.well-known/)',
} as const
/** Where a server listens. */
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
      description: 'Port to listen on; 0 takes a free one.',
    },
    backlog: {
      type: 'integer',
      minimum: 1,
      maximum: 65_535,
      // Linux's own cap since 5.4: whoever has not changed that gets all that the system gives.
      default: 4096,
      description: 'Connections that may wait to be accepted; the system has a cap of its own (net.core.somaxconn).',
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
      // Less cannot hold any request of the protocol.
      minimum: 100,
      default: '4mb',
      description: 'Largest request body: bytes, or a number with b, kb, mb or gb. More answers 413.',
    },
    keepAliveTimeout: duration('How long an idle connection is kept.', { default: '5s' }),
    requestTimeout: duration('How long receiving one request may take; it never ends a call or a stream.', {
      default: '60s',
    }),
    writeTimeout: duration(
      'How long a reader may leave what waits for it: all of it, or 64 kB, is to be taken by then.',
      { default: '30s' },
    ),
    allowedHosts: list(
      text('A host name, with or without port.', {
        pattern: '^([^\\s/?#@:*\\[\\]]+|\\[[0-9A-Fa-f:.]+\\])(:([1-5]?\\d{1,4}|6[0-5]\\d{3}))?$',
        patternErrorMessage: "a host name such as 'mcp.acme.example', without scheme, path and wildcard",
      }),
      "Host names that may be asked for, beside publicUrl's and, on a loopback bind, loopback names.",
      { default: [] },
    ),
    allowedOrigins: list(
      text('An origin.', {
        pattern: '^(null|[A-Za-z][A-Za-z0-9+.-]*://[^/?#@*\\s]+(/[^?#\\s]*)?)$',
        patternErrorMessage: "an origin such as 'https://app.acme.example', without wildcard",
        examples: ['https://app.acme.example'],
      }),
      "Origins whose pages may call, beside publicUrl's and, on a loopback bind, loopback origins.",
      { default: [] },
    ),
    trustProxy: {
      anyOf: [
        flag('True: one proxy.'),
        { type: 'integer', minimum: 1, maximum: 32, description: 'How many proxies stand in front.' },
        list(text('An address, a range such as 10.0.0.0/8, or loopback, linklocal, uniquelocal.'), 'Their addresses.', {
          minItems: 1,
        }),
      ],
      default: false,
      description: 'Which proxies stand in front: X-Forwarded-For and -Host are believed as far as they wrote them.',
      examples: [1, ['10.0.0.0/8']],
    },
  },
  { title: 'HttpSettings', default: {}, description: 'Where and how this host listens.' },
)
