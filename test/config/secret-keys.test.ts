// Tests that secret config keys are marked in the schema and that no output contains their values.
import { expect } from 'chai'
import { checkConfig, formatProblems } from '../../core/config/check-config.ts'
import { buildConfigSchema } from '../../core/config/config-schema.ts'
import { followRef, isSecretAt, trimSecrets } from '../../core/config/walk-schema.ts'
import { createHost, pluginsOf } from '../../core/create-host.ts'
import { redactUrl } from '../../core/http/request-target.ts'
import type { Config, JsonSchema } from '../../core/index.ts'
import { builtInPlugins } from '../../plugins/index.ts'
import { createTestLog } from '../support/start-host.ts'
import { caseCount, selectCases } from '../support/thorough.ts'

type Path = readonly (string | number)[]

const SCHEMA = buildConfigSchema(pluginsOf(builtInPlugins))

/** A policy in a policy is described by the same schema: to this depth. */
const DEEPEST = 9

/** Every place that a schema describes; under names that anybody may choose one called `x`. */
function* placesOf(given: JsonSchema, path: Path = []): Generator<{ path: Path; schema: JsonSchema }> {
  const schema = followRef(given, SCHEMA)
  yield { path, schema }
  if (path.length > DEEPEST) return
  for (const branch of [schema['anyOf'], schema['oneOf']].flat() as (JsonSchema | undefined)[]) {
    if (branch) for (const place of placesOf(branch, path)) if (place.path.length > path.length) yield place
  }
  for (const [key, child] of Object.entries((schema['properties'] ?? {}) as Record<string, JsonSchema>)) {
    yield* placesOf(child, [...path, key])
  }
  const named = schema['additionalProperties']
  if (typeof named === 'object' && named !== null) {
    yield* placesOf(named as JsonSchema, [...path, path[0] === 'routes' && path.length === 1 ? '/' : 'x'])
  }
  const { items } = schema
  if (typeof items === 'object' && items !== null) yield* placesOf(items as JsonSchema, [...path, 0])
}

const places = [...new Map([...placesOf(SCHEMA)].map(place => [place.path.join('.'), place])).values()]
const isSecretPlace = ({ path }: { path: Path }) => isSecretAt(SCHEMA, path)
const secrets = places.filter(({ schema }) => schema['writeOnly'] === true).map(({ path }) => path.join('.'))

const CANARY = 'hunter2'
/** A URL with a password, and all that may go wrong with one. */
const URLS = [
  `redis://:${CANARY}@127.0.0.1:6379\n`,
  `redis://:a ${CANARY}@127.0.0.1`,
  `redis://:${CANARY} a@127.0.0.1`,
  `redis://:a@${CANARY} b@127.0.0.1`,
  `redis://:a/${CANARY}@127.0.0.1`,
  `redis://:a#${CANARY}@127.0.0.1`,
  `redis://:${CANARY}%zz@127.0.0.1`,
  `redis:// :${CANARY}@127.0.0.1`,
  `REDIS://:${CANARY}@127.0.0.1`,
  `https://me:${CANARY}@login.example/path`,
  `https://login.example/path?key=${CANARY}`,
  `https://login.example/#${CANARY}`,
  `me:a ${CANARY}@login.example`,
]
/** What may stand where a secret belongs. */
const BARE = [
  CANARY,
  `${CANARY}\n`,
  ` ${CANARY.toUpperCase()} `,
  `${CANARY} and more`,
  [CANARY],
  [[CANARY]],
  { key: CANARY },
  `-----BEGIN PRIVATE KEY-----\n${CANARY}`,
]

/** A config of which all is fine but the value at a place. */
function configWith(path: Path, value: unknown): object {
  const base: Record<string, unknown> = {
    server: { name: 'a', version: '1' },
    http: { port: 0 },
    toolsets: { none: [] },
    routes: { '/': { toolsets: 'none' } },
    plugins: {},
  }
  const put = (within: unknown, [key, ...rest]: Path): unknown => {
    if (key === undefined) return value
    if (typeof key === 'number') return [put(undefined, rest)]
    const object = (within ?? {}) as Record<string, unknown>
    return { ...object, [key]: put(object[key], rest) }
  }
  return put(base, path) as object
}

/** All that the operator reads of a start: the refusal with its causes, or the lines of the log. */
async function toldOf(config: object): Promise<string> {
  const log = createTestLog()
  const [outcome] = await Promise.allSettled([createHost(config as Config, { log })])
  const lines = JSON.stringify(log.lines)
  if (outcome.status === 'rejected') return `${lines}${outcome.reason.message}${outcome.reason.cause ?? ''}`
  await outcome.value.close({ grace: 0 })
  return lines
}

/** A fifth of the values, others at the next place: URLs are redacted everywhere by the same code. */
const valuesAt = (place: { path: Path }, index: number) =>
  [...URLS, ...(isSecretPlace(place) ? BARE : [])].filter((_, at) => (at + index) % 5 === 0)

const holds = (text: string) => text.toLowerCase().includes(CANARY)

describe('Secret config keys', () => {
  it('match the expected list of keys marked in the schema', () => {
    const redis = [
      'url',
      'password',
      'tls.ca',
      'tls.cert',
      'tls.key',
      'cluster',
      'cluster.0',
      ...['addresses', 'addresses.0', 'password'].map(key => `sentinel.${key}`),
    ]
    const takers = [
      'redis',
      ...['event-store', 'session-store', 'grant-store', 'task-store', 'change-bus', 'cluster'].map(
        name => `${name}-redis`,
      ),
    ]
    const under = (plugin: string) => [`plugins.${plugin}`, `routes./.plugins.${plugin}`]
    const expected = [
      'secrets',
      'secrets.0',
      'http.tls.key',
      'http.tls.passphrase',
      ...takers
        .flatMap(taker => (taker === 'redis' ? [taker] : under(taker)))
        .concat('store.redis', 'routes./.store.redis')
        .flatMap(at => redis.map(key => `${at}.${key}`)),
      ...[...under('store-postgres'), 'store.postgres', 'routes./.store.postgres'].map(at => `${at}.url`),
      ...['console', 'health', 'metrics'].flatMap(name => under(name).map(at => `${at}.token`)),
      ...under('auth-introspection').map(at => `${at}.clientSecret`),
      ...under('auth-bridge').flatMap(at => [`${at}.provider.clientSecret`, `${at}.clients.fixed.0.clientSecret`]),
      ...under('upstream')
        .map(at => `${at}.servers.x`)
        .flatMap(at =>
          ['url', 'env.x', 'headers.x', 'tls.key', 'auth.clientSecret', 'auth.privateKey'].map(key => `${at}.${key}`),
        ),
      ...under('openapi')
        .map(at => `${at}.documents.x`)
        .flatMap(at =>
          [
            ...['credentials', 'credentials.x.password', 'credentials.x.clientSecret', 'credentials.x.privateKey'],
            ...['headers.x', 'auth.clientSecret', 'auth.privateKey'],
          ].map(key => `${at}.${key}`),
        ),
      ...under('auth-jwt').flatMap(at =>
        ['secret', 'keys', 'issuers.0.secret', 'issuers.0.keys'].map(key => `${at}.${key}`),
      ),
    ]
    expect([...new Set(secrets)].sort()).to.deep.equal(expected.sort())
  })

  it('include every key with a secret-like name', () => {
    const sounding = /secret|pass|credential|private|api.?key|^key$|^url$/i
    const unmarked = places.filter(
      ({ path, schema }) =>
        schema['type'] !== 'boolean' &&
        sounding.test(`${path.at(-1)}`) &&
        // Names of environment variables.
        path.at(-1) !== 'passEnv' &&
        !isSecretAt(SCHEMA, path),
    )
    expect(unmarked.map(({ path }) => path.join('.'))).to.deep.equal([])
  })

  it('lose only a trailing line break of their value', () => {
    const schema = {
      type: 'object',
      properties: {
        secret: { writeOnly: true },
        named: { $ref: '#/$defs/key' },
        nested: { anyOf: [{ const: false }, { type: 'array', items: { type: 'string', writeOnly: true } }] },
        plain: { type: 'string' },
      },
      $defs: { key: { type: 'string', writeOnly: true } },
    }
    const other = { list: [() => 1] }
    const config = { secret: ' a b \r\n', named: 'c\n', nested: ['x\n\n', 'y'], plain: 'p\n', other }
    const trimmed = trimSecrets(config, schema)
    expect(trimmed).to.deep.equal({ secret: ' a b ', named: 'c', nested: ['x', 'y'], plain: 'p\n', other })
    expect(trimmed.other).to.equal(other)
    const clean = { secret: 'a', nested: ['x'], other }
    expect(trimSecrets(clean, schema)).to.equal(clean)
  })
})

describe('Secret redaction', () => {
  it('hides URL passwords and secrets in config check output, for every key', () => {
    let tried = 0
    const leaks: string[] = []
    // What stands under a route is held to the very same schemas.
    const checked = places.filter(({ path }) => path.length > 0 && !(path[0] === 'routes' && path.length > 4))
    for (const [index, place] of selectCases(checked, 24).entries()) {
      const { path } = place
      for (const value of valuesAt(place, index)) {
        tried += 1
        const loaded = { file: '/etc/mcp.config.ts', config: configWith(path, value), locate: () => undefined }
        if (holds(formatProblems(checkConfig(loaded, SCHEMA)))) leaks.push(`${path.join('.')} ${JSON.stringify(value)}`)
      }
    }
    expect(leaks).to.deep.equal([])
    expect(tried).to.be.greaterThan(caseCount(1_500, 40))
  })

  it('reports empty secrets as empty', () => {
    const at = ['plugins', 'auth-bridge', 'provider', 'clientSecret']
    const told = (value: string) =>
      formatProblems(
        checkConfig({ file: '/etc/mcp.config.ts', config: configWith(at, value), locate: () => undefined }, SCHEMA),
      )
    expect(told('')).to.contain('found an empty string; is its environment variable set?')
    expect(told('').concat(told(' '))).to.not.contain('not shown')
    const all = secrets.filter(key => !key.startsWith('routes')).map(key => key.split('.'))
    for (const path of all.map(keys => keys.map(key => (/^\d+$/.test(key) ? Number(key) : key)))) {
      const loaded = { file: '/etc/mcp.config.ts', config: configWith(path, ''), locate: () => undefined }
      expect(formatProblems(checkConfig(loaded, SCHEMA)), path.join('.')).to.not.contain('a string (not shown)')
    }
  })

  it('hides URL passwords and secrets in startup output', async () => {
    const leaks: string[] = []
    const read = places.filter(({ path, schema }) => {
      const isUrl = `${schema['pattern']}`.includes('://') || schema['format'] === 'uri'
      // The name of a file is no secret: a start says which it is.
      if (path.join('.') === 'secrets.file') return false
      return path[0] !== 'routes' && (isUrl || isSecretPlace({ path }))
    })
    for (const [index, place] of selectCases(read, 10).entries()) {
      for (const value of valuesAt(place, index)) {
        if (holds(await toldOf(configWith(place.path, value))))
          leaks.push(`${place.path.join('.')} ${JSON.stringify(value)}`)
      }
    }
    expect(leaks).to.deep.equal([])
  })

  it('hides values of unknown keys', async () => {
    const leaks: string[] = []
    for (const path of [
      'redis.uri',
      'redis.pasword',
      'plugins.auth-jwt.shared',
      'secrit',
      'plugins.auth-introspection.clientsecret',
    ]) {
      for (const value of [CANARY, ...selectCases(URLS, 4)]) {
        const told = await toldOf(configWith(path.split('.'), value))
        expect(told).to.include('unknown option')
        if (holds(told)) leaks.push(`${path} ${value}`)
      }
    }
    expect(leaks).to.deep.equal([])
  })

  it('explains how to encode a password in a URL', async () => {
    for (const url of URLS.slice(1, 8)) {
      expect(await toldOf({ ...configWith(['redis'], { url }), plugins: { 'change-bus-redis': {} } })).to.match(
        /percent-encode.*redis\.password/,
      )
    }
  })
})

describe('redactUrl', () => {
  for (const [url, shown] of [
    ['https://login.example/a/b', 'https://login.example/a/b'],
    ['https://login.example/a?b=c', 'https://login.example/a…'],
    ['https://me:pw@login.example/a', 'https://…@…'],
    ['redis://:p w@h', 'redis://…@…'],
    ['me@h', '…@…'],
    ['@acme/tools', '@acme/tools'],
    ['./a?b', './a?b'],
  ] as const) {
    it(`shows ${url} as ${shown}`, () => expect(redactUrl(url)).to.equal(shown))
  }
})
