// How Redis is reached, as JSON Schema: the config's `redis` and the same options of each plugin that uses it.
// host-schema.ts puts it into the whole; plugins get it through core/index.ts.
import type { JsonSchema } from '../mcp/protocol.ts'
import { DURATION_PATTERN } from '../mcp/units.ts'

/** `redis://` or, over TLS, `rediss://`; with a user, a password and the number of a database where wanted. */
export const REDIS_URL_PATTERN = '^rediss?://[^/?#\\s]+(/\\d*)?$'

const url = (description: string) => ({
  type: 'string' as const,
  pattern: REDIS_URL_PATTERN,
  writeOnly: true as const,
  description,
})
const pem = (description: string): JsonSchema => ({ type: 'string', minLength: 1, writeOnly: true, description })

/** One schema for each of `RedisSettings`. */
export const REDIS_PROPERTIES = {
  url: url('Where Redis is: redis://host:6379, or rediss:// for TLS; may name user, password and database.'),
  username: { type: 'string' as const, description: 'The ACL user, where the URL names none.' },
  password: { type: 'string' as const, writeOnly: true as const, description: 'Its password, where the URL has none.' },
  tls: {
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
  } as JsonSchema,
  keyPrefix: {
    type: 'string' as const,
    pattern: '^[^{}\\s]+$',
    description: "What every key starts with; hosts that share only a Redis have one each. Default: 'mcp-host:'.",
  },
  commandTimeout: {
    type: ['string', 'number'],
    pattern: DURATION_PATTERN,
    minimum: 100,
    description:
      "How long Redis may take to answer; then what waits for it is refused, or goes on without. Default: '5s'.",
  } as JsonSchema,
  cluster: {
    type: 'array',
    minItems: 1,
    items: url('One of its nodes.'),
    writeOnly: true,
    description: 'URLs of some nodes of a Redis Cluster, in the place of `url`.',
  } as JsonSchema,
}
