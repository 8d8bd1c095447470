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
      "a URL such as 'redis://127.0.0.1:6379', or 'rediss://' for TLS; percent-encode special characters of its password, " +
      'or use redis.password',
    writeOnly: true,
    description,
  }) as const
const pem = <const D extends string>(description: D) =>
  ({ type: 'string', minLength: 1, writeOnly: true, description }) as const

const PASSWORD = {
  anyOf: [{ type: 'string' }, { callable: true }],
  writeOnly: true,
  description:
    'Password of Redis, if not in the URL. In code also a function that returns the password for each connection.',
} as JsonSchema & { readonly writeOnly: true } & Typed<SecretSource>

export const REDIS_PROPERTIES = {
  url: url('URL of Redis: redis://host:6379, or rediss:// for TLS. Can contain user, password and database.'),
  username: { type: 'string', description: 'The ACL user, if not in the URL.' },
  password: PASSWORD,
  tls: {
    title: 'RedisTls',
    type: 'object',
    additionalProperties: false,
    description: 'TLS settings for rediss://: ca, cert, key (PEM, or paths of PEM files), servername.',
    properties: {
      ca: pem('Certificate authority of Redis: PEM, or the path of a PEM file. Default: the system authorities.'),
      cert: pem('Client certificate: PEM, or the path of a PEM file.'),
      key: pem('The private key: PEM, or the path of a PEM file.'),
      servername: {
        type: 'string',
        minLength: 1,
        description: 'The name in the certificate of Redis. Default: the host name.',
      },
    },
  },
  keyPrefix: {
    type: 'string',
    pattern: '^[^{}\\s]+$',
    description: `Prefix of every key. Deployments that share a Redis need different prefixes. Default: '${REDIS_DEFAULTS.keyPrefix}'.`,
  },
  commandTimeout: {
    type: ['string', 'number'],
    pattern: DURATION_PATTERN,
    minimum: 100,
    description: `Time limit of a Redis command. Requests that depend on it then get 503. Default: '${REDIS_DEFAULTS.commandTimeout}'.`,
  },
  cluster: {
    type: 'array',
    minItems: 1,
    items: url('URL of a node.'),
    writeOnly: true,
    description: 'URLs of some nodes of a Redis Cluster, in place of `url`.',
  },
  sentinel: {
    title: 'RedisSentinel',
    type: 'object',
    additionalProperties: false,
    required: ['name', 'addresses'],
    description: 'Sentinels, in place of `url`: { name, addresses, username, password, database }.',
    properties: {
      name: { type: 'string', minLength: 1, description: 'Name of the primary at the Sentinels, such as mymaster.' },
      addresses: {
        type: 'array',
        minItems: 1,
        items: url('URL of a Sentinel. rediss:// applies to Sentinels and the primary.'),
        writeOnly: true,
        description: 'URLs of the Sentinels: redis://host:26379.',
      },
      username: { type: 'string', description: 'The ACL user at the Sentinels.' },
      password: { type: 'string', writeOnly: true, description: 'The password at the Sentinels.' },
      database: {
        type: 'integer',
        minimum: 0,
        description: 'Database number at the primary. Default: 0.',
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
  description: 'Connection to Redis for all plugins. Plugin options can override single keys.',
  examples: [{ url: 'redis://127.0.0.1:6379' }],
} as const

/** One connection for all plugins that use Redis. */
export interface RedisSettings extends OptionsOf<typeof REDIS> {}

/** The config section of this family. */
export interface RedisSections {
  /** Settings for all plugins that use Redis; a plugin can override them. */
  redis: RedisSettings
}

/** `sections` of `definePlugin`. */
export const REDIS_SECTIONS: SectionSchemas<RedisSections> = { redis: REDIS }

/** The host of a plugin with these sections. */
export type RedisHost = InternalHost & SectionReader<RedisSections>
