// Shared parts of the JSON Schemas. Literal types are kept, because config types are inferred from the schemas.

import { DURATION_PATTERN, POSITIVE_DURATION_PATTERN, SIZE_PATTERN } from '../units.ts'
import type { JsonSchema } from '../wire/protocol.ts'

type None = Record<never, never>

export const text = <const D extends string, const E extends JsonSchema = None>(description: D, extra?: E) =>
  ({ type: 'string', minLength: 1 as number, description, ...(extra as E) }) as const
/** A string that can be empty. */
export const words = <const D extends string, const E extends JsonSchema = None>(description: D, extra?: E) =>
  ({ type: 'string', description, ...(extra as E) }) as const
export const choice = <
  const V extends readonly [string, ...string[]],
  const D extends string,
  const E extends JsonSchema = None,
>(
  values: V,
  description: D,
  extra?: E,
) => ({ type: 'string', enum: values, description, ...(extra as E) }) as const
export const flag = <const D extends string, const E extends JsonSchema = None>(description: D, extra?: E) =>
  ({ type: 'boolean', description, ...(extra as E) }) as const
export const count = <const D extends string, const E extends JsonSchema = None>(description: D, extra?: E) =>
  ({ type: 'integer', minimum: 1 as number, ...(extra as E), description }) as const
export const list = <const I extends JsonSchema, const D extends string, const E extends JsonSchema = None>(
  items: I,
  description: D,
  extra?: E,
) => ({ type: 'array', items, description, ...(extra as E) }) as const
export const closed = <const P extends Record<string, JsonSchema>, const E extends JsonSchema = None>(
  properties: P,
  extra?: E,
) => ({ type: 'object', additionalProperties: false, properties, ...(extra as E) }) as const
/** An object with any keys, whose values have this schema. */
export const mapOf = <const V extends JsonSchema, const D extends string, const E extends JsonSchema = None>(
  values: V,
  description: D,
  extra?: E,
) => ({ type: 'object', additionalProperties: values, description, ...(extra as E) }) as const
export const duration = <const D extends string, const E extends JsonSchema = None>(description: D, extra?: E) =>
  ({
    type: ['string', 'number'],
    pattern: DURATION_PATTERN,
    minimum: 0 as number,
    description,
    ...(extra as E),
  }) as const
/** The schema of a duration above zero. With zero, every call would fail. */
export const positiveDuration = <const D extends string, const E extends JsonSchema = None>(
  description: D,
  extra?: E,
) =>
  ({
    type: ['string', 'number'],
    pattern: POSITIVE_DURATION_PATTERN,
    exclusiveMinimum: 0,
    description,
    ...(extra as E),
  }) as const
export const size = <const D extends string, const E extends JsonSchema = None>(description: D, extra?: E) =>
  ({ type: ['string', 'number'], pattern: SIZE_PATTERN, minimum: 0 as number, description, ...(extra as E) }) as const
export const oneOrMore = <const D extends string, const E extends JsonSchema = None>(what: D, extra?: E) =>
  ({ anyOf: [text(what, extra), list(text(what, extra), `${what}; each of them`, { minItems: 1 })] }) as const

/** The pattern of a scope (RFC 6749 section 3.3); several scopes are a list. */
export const SCOPE = { pattern: '^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$' } as const

export const mediaType = <const D extends string>(description: D) =>
  text(description, { pattern: '^[^/\\s]+/[^/\\s]+', patternErrorMessage: "a media type such as 'text/markdown'" })

export const icon = closed(
  {
    src: text('URL of the image: an https or data URI.', {
      pattern: '^(https?://[^/\\s]|data:[^,]*,)',
      patternErrorMessage: 'an https URL, or a data URI',
    }),
    mimeType: mediaType('Media type of the image.'),
    sizes: list(
      text('Such as 48x48, or any.', {
        pattern: '^(\\d+x\\d+|any)$',
        patternErrorMessage: "a size such as '48x48', or 'any'",
      }),
      'Sizes of the image.',
    ),
    theme: { enum: ['light', 'dark'], description: 'Background for which the image is intended.' },
  },
  { required: ['src'] },
)

export const isolate = {
  anyOf: [
    { const: true },
    closed({
      memory: size('Maximum memory: heap and buffers.'),
      cpuTime: duration('Maximum CPU time of one call.'),
      processes: count('Maximum number of processes, and of concurrent calls.', { maximum: 64 }),
    }),
  ],
  description: 'Runs the tool in a worker process, with limits.',
} as const

/** Matches absolute http(s) URLs without user, query, fragment and placeholders such as `{tenant}`. */
export const HTTP_URL_PATTERN = '^https?://(?!:)[^/?#@\\s{}<>*]+(/[^?#\\s{}<>]*)?$'
/** Matches the same URLs with an optional query. Credentials have their own keys. */
export const ENDPOINT_URL_PATTERN = `${HTTP_URL_PATTERN.slice(0, -1)}(\\?[^#\\s]*)?$`

const DISCOVERY = '/\\.well-known/o'
const ENDPOINT = '/(authorize|token|jwks|certs)(\\.json)?$'
/** Matches incomplete issuers: Microsoft issuers contain a tenant, Auth0 issuers end with a slash. */
const INCOMPLETE =
  'https://login\\.microsoftonline\\.com(/?$|/(common|organizations|consumers)(/|$))|https://[^/]+\\.auth0\\.com$'
/** An issuer URL, not a discovery document or endpoint. */
export const ISSUER_URL = {
  pattern: `^(?!.*(/\\.well-known(/|$)|${ENDPOINT}))(?!${INCOMPLETE})${HTTP_URL_PATTERN.slice(1)}`,
} as const
export const KEYS_URL = { pattern: `^(?!.*${DISCOVERY})${ENDPOINT_URL_PATTERN.slice(1)}` } as const
/** The audience or issuer of a token. Metadata document URLs are refused. */
export const IDENTIFIER = {
  pattern: '^(?!https?://.*/\\.well-known/)',
} as const
export const LISTEN_ADDRESS = {
  pattern:
    '^((?=.*[^\\d.])[^\\s/:*]+|((25[0-5]|2[0-4]\\d|1?\\d?\\d)(\\.(?=\\d)|$)){4}|\\[?(?=.*:)[0-9A-Fa-f:.]+(%[^\\s/]+)?\\]?)$',
  patternErrorMessage: 'an address or a name, without scheme and port',
} as const
