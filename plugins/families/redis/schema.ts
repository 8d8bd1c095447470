// The config section `redis`, as JSON Schema and types.
import type { JsonSchema, Typed } from '../../../core/index.ts'
import { closed, count, duration, type InternalHost, list, text, words } from '../../../core/internal.ts'
import type { OptionsOf, SectionReader, SectionSchemas } from '../../../core/plugin.ts'

/** A password, optionally with its expiry: a Date, or milliseconds since the epoch. */
type GivenSecret = string | { readonly password: string; readonly expires?: Date | number }

/** A secret, or a function that returns it: called for each connection and before expiry. */
type SecretSource = string | (() => GivenSecret | Promise<GivenSecret>)

/** Not in the schema: a plugin's default would hide the section. */
export const REDIS_DEFAULTS = { keyPrefix: 'mcp-host:', commandTimeout: '5s' } as const

const url = <const D extends string>(description: D) =>
  words(description, {
    pattern: '^rediss?://[^/?#\\s]+(/\\d*)?$',
    patternErrorMessage:
      "a URL such as 'redis://127.0.0.1:6379', or 'rediss://' for TLS; percent-encode special characters of its password, " +
      'or use redis.password',
    writeOnly: true,
  })
const pem = <const D extends string>(description: D) => text(description, { writeOnly: true })

const PASSWORD = {
  anyOf: [{ type: 'string' }, { callable: true }],
  writeOnly: true,
  description:
    'Password of Redis, if not in the URL. In code also a function that returns the password for each connection.',
} as JsonSchema & { readonly writeOnly: true } & Typed<SecretSource>

export const REDIS_PROPERTIES = {
  url: url('URL of Redis: redis://host:6379, or rediss:// for TLS. Can contain user, password and database.'),
  username: words('The ACL user, if not in the URL.'),
  password: PASSWORD,
  tls: closed(
    {
      ca: pem('Certificate authority of Redis: PEM, or the path of a PEM file. Default: the system authorities.'),
      cert: pem('Client certificate: PEM, or the path of a PEM file.'),
      key: pem('The private key: PEM, or the path of a PEM file.'),
      servername: text('The name in the certificate of Redis. Default: the host name.'),
    },
    {
      title: 'RedisTls',
      description: 'TLS settings for rediss://: ca, cert, key (PEM, or paths of PEM files), servername.',
    },
  ),
  keyPrefix: words(
    `Prefix of every key. Deployments that share a Redis need different prefixes. Default: '${REDIS_DEFAULTS.keyPrefix}'.`,
    { pattern: '^[^{}\\s]+$' },
  ),
  commandTimeout: duration(
    `Time limit of a Redis command. Requests that depend on it then get 503. Default: '${REDIS_DEFAULTS.commandTimeout}'.`,
    { minimum: 100 },
  ),
  cluster: list(url('URL of a node.'), 'URLs of some nodes of a Redis Cluster, in place of `url`.', {
    minItems: 1,
    writeOnly: true,
  }),
  sentinel: closed(
    {
      name: text('Name of the primary at the Sentinels, such as mymaster.'),
      addresses: list(
        url('URL of a Sentinel. rediss:// applies to Sentinels and the primary.'),
        'URLs of the Sentinels: redis://host:26379.',
        { minItems: 1, writeOnly: true },
      ),
      username: words('The ACL user at the Sentinels.'),
      password: words('The password at the Sentinels.', { writeOnly: true }),
      database: count('Database number at the primary. Default: 0.', { minimum: 0 }),
    },
    {
      title: 'RedisSentinel',
      required: ['name', 'addresses'],
      description: 'Sentinels, in place of `url`: { name, addresses, username, password, database }.',
    },
  ),
} as const

const REDIS = closed(REDIS_PROPERTIES, {
  title: 'RedisSettings',
  minProperties: 1,
  description: 'Connection to Redis for all plugins. Plugin options can override single keys.',
  examples: [{ url: 'redis://127.0.0.1:6379' }],
})

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
