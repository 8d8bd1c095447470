// The config section `redis`, as JSON Schema and types.
import type { JsonSchema, Typed } from '../../../core/index.ts'
import type { InternalHost } from '../../../core/internal.ts'
import { DURATION_PATTERN, type OptionsOf, type SectionReader, type SectionSchemas } from '../../../core/plugin.ts'

/** A password, optionally with its expiry: a Date, or milliseconds since the epoch. */
type GivenSecret = string | { readonly password: string; readonly expires?: Date | number }

/** A secret, or a function that returns it: called for each connection and before expiry. */
type SecretSource = string | (() => GivenSecret | Promise<GivenSecret>)

/** Not in the schema: a plugin's default would hide the section. */
export const REDIS_DEFAULTS = { keyPrefix: 'mcp-host:', commandTimeout: '5s' } as const

const url = <const D extends string>(description: D) =>
  ({
    type: 'string',
    pattern: '^rediss?://[^/?#\\s]+(/\\d*)?$',
    patternErrorMessage:
      "a URL such as 'redis://127.0.0.1:6379', or 'rediss://' for TLS; percent-encode what is special in its password, " +
      'or use redis.password',
    writeOnly: true,
    description,
  }) as const
const pem = <const D extends string>(description: D) =>
  ({ type: 'string', minLength: 1, writeOnly: true, description }) as const

const PASSWORD = {
  anyOf: [{ type: 'string' }, { callable: true }],
  writeOnly: true,
  description: 'Its password, where the URL has none; in code also a function that gives it for each connection.',
} as JsonSchema & { readonly writeOnly: true } & Typed<SecretSource>

export const REDIS_PROPERTIES = {
  url: url('Where Redis is: redis://host:6379, or rediss:// for TLS; may name user, password and database.'),
  username: { type: 'string', description: 'The ACL user, where the URL names none.' },
  password: PASSWORD,
  tls: {
    title: 'RedisTls',
    type: 'object',
    additionalProperties: false,
    description: 'For rediss:// alone.',
    properties: {
      ca: pem('Who signed the certificate of Redis: PEM, or the path of a PEM file. Default: the well-known ones.'),
      cert: pem('Our certificate, where Redis asks for one: PEM, or the path of a PEM file.'),
      key: pem('Its key: PEM, or the path of a PEM file.'),
      servername: {
        type: 'string',
        minLength: 1,
        description: "The name in Redis's certificate. Default: the host's.",
      },
    },
  },
  keyPrefix: {
    type: 'string',
    pattern: '^[^{}\\s]+$',
    description: `What every key starts with; hosts that share only a Redis have one each. Default: '${REDIS_DEFAULTS.keyPrefix}'.`,
  },
  commandTimeout: {
    type: ['string', 'number'],
    pattern: DURATION_PATTERN,
    minimum: 100,
    description: `How long Redis may take to answer; then what waits for it is refused, or goes on without. Default: '${REDIS_DEFAULTS.commandTimeout}'.`,
  },
  cluster: {
    type: 'array',
    minItems: 1,
    items: url('One of its nodes.'),
    writeOnly: true,
    description: 'URLs of some nodes of a Redis Cluster, in the place of `url`.',
  },
  sentinel: {
    title: 'RedisSentinel',
    type: 'object',
    additionalProperties: false,
    required: ['name', 'addresses'],
    description: 'Sentinels that name the primary, in the place of `url`.',
    properties: {
      name: { type: 'string', minLength: 1, description: 'What they call the primary, such as mymaster.' },
      addresses: {
        type: 'array',
        minItems: 1,
        items: url('One of them; rediss:// is for them and the primary.'),
        writeOnly: true,
        description: 'Their URLs: redis://host:26379.',
      },
      username: { type: 'string', description: 'The ACL user at the Sentinels.' },
      password: { type: 'string', writeOnly: true, description: 'Its password there.' },
      database: {
        type: 'integer',
        minimum: 0,
        description: 'The number of the database at the primary; 0 if left out.',
      },
    },
  },
} as const

const REDIS = {
  title: 'RedisSettings',
  type: 'object',
  additionalProperties: false,
  properties: REDIS_PROPERTIES,
  minProperties: 1,
  description: 'How Redis is reached, for every plugin that keeps things there; each may say otherwise for itself.',
  examples: [{ url: 'redis://127.0.0.1:6379' }],
} as const

/** One connection for all plugins that use Redis. */
export interface RedisSettings extends OptionsOf<typeof REDIS> {}

/** The config section of this family. */
export interface RedisSections {
  /** For all plugins that use Redis; a plugin can override it. */
  redis: RedisSettings
}

/** `sections` of `definePlugin`. */
export const REDIS_SECTIONS: SectionSchemas<RedisSections> = { redis: REDIS }

/** The host of a plugin with these sections. */
export type RedisHost = InternalHost & SectionReader<RedisSections>
