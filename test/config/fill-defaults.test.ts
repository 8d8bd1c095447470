// Tests that default values from schemas are applied at every depth.
import { expect } from 'chai'
import { fillDefaults } from '../../core/config/walk-schema.ts'
import { createHost } from '../../core/create-host.ts'
import { definePlugin } from '../../core/internal.ts'
import { createTestLog } from '../../core/testing/test-log.ts'

const SCHEMA = {
  type: 'object',
  properties: {
    port: { type: 'integer', default: 3000 },
    name: { type: 'string' },
    always: { type: 'object', default: {}, properties: { on: { type: 'boolean', default: true } } },
    given: { type: 'object', properties: { on: { type: 'boolean', default: true } } },
    list: { type: 'array', items: { type: 'object', properties: { on: { type: 'boolean', default: true } } } },
    named: { type: 'object', additionalProperties: { $ref: '#/$defs/node' } },
    either: { anyOf: [{ const: false }, { $ref: '#/$defs/node' }] },
    unclear: { anyOf: [{ type: 'object', properties: { a: { default: 1 } } }, { type: 'object' }] },
    origins: { type: 'array', default: ['*'] },
  },
  $defs: {
    node: {
      type: 'object',
      properties: { depth: { default: 0 }, inner: { type: 'array', items: { $ref: '#/$defs/node' } } },
    },
  },
}
const NOTHING_GIVEN = { port: 3000, always: { on: true }, origins: ['*'] }

describe('fillDefaults', () => {
  it('applies defaults to absent and undefined keys; creates absent objects only if the schema has a default', () => {
    expect(fillDefaults({}, SCHEMA)).to.deep.equal(NOTHING_GIVEN)
    expect(fillDefaults({ port: undefined, name: 'a' }, SCHEMA)).to.deep.equal({ ...NOTHING_GIVEN, name: 'a' })
    expect(fillDefaults({ port: 0, always: { on: false }, origins: [] }, SCHEMA)).to.deep.equal({
      port: 0,
      always: { on: false },
      origins: [],
    })
  })

  it('applies defaults in nested objects, lists, arbitrary keys, $refs and the matching branch', () => {
    const nested = { given: {}, list: [{}, { on: false }], named: { x: { inner: [{}] } }, either: {}, unclear: {} }
    expect(fillDefaults(nested, SCHEMA)).to.deep.equal({
      ...NOTHING_GIVEN,
      given: { on: true },
      list: [{ on: true }, { on: false }],
      named: { x: { depth: 0, inner: [{ depth: 0 }] } },
      either: { depth: 0 },
      unclear: {},
    })
    expect(fillDefaults({ either: false }, SCHEMA)).to.deep.equal({ ...NOTHING_GIVEN, either: false })
  })

  it('keeps given values and copies only objects that need a default', () => {
    const freeze = <T>(value: T): T => {
      if (typeof value === 'object' && value !== null) Object.values(value).forEach(freeze)
      return Object.freeze(value)
    }
    const whole = freeze({ ...NOTHING_GIVEN, given: { on: false }, made: new Map(), act: () => 1 })
    expect(fillDefaults(whole, SCHEMA)).to.equal(whole)
    const lacking = freeze({ given: { on: false }, made: new Map(), list: [{ on: true }, {}] })
    const filled = fillDefaults(lacking, SCHEMA) as typeof lacking
    expect(filled).not.to.equal(lacking)
    expect(filled.given).to.equal(lacking.given)
    expect(filled.made).to.equal(lacking.made)
    expect(filled.list[0]).to.equal(lacking.list[0])
  })

  it("copies default values instead of sharing the schema's object", () => {
    const [one, other] = [fillDefaults({}, SCHEMA), fillDefaults({}, SCHEMA)] as { origins: string[] }[]
    one?.origins.push('x')
    expect(other?.origins).to.deep.equal(['*'])
  })

  it('keeps a key named __proto__ as an own property', () => {
    const filled = fillDefaults(JSON.parse('{"__proto__": {"port": 1}}'), SCHEMA) as { port: number }
    expect(filled.port).to.equal(3000)
    expect(Object.hasOwn(filled, '__proto__')).to.equal(true)
  })
})

describe('Plugin option defaults', () => {
  interface Options {
    limits?: { perMinute?: number; burst?: number }
    mode?: string
  }
  interface Filled extends Options {
    limits: { perMinute: number; burst: number }
    mode: string
  }
  const seen: [readonly string[], Filled][] = []
  const limits = definePlugin<Options, Filled>({
    options: {
      type: 'object',
      additionalProperties: false,
      properties: {
        limits: {
          type: 'object',
          default: {},
          additionalProperties: false,
          properties: { perMinute: { type: 'integer', default: 600 }, burst: { type: 'integer', default: 10 } },
        },
        mode: { type: 'string', default: 'enforce' },
      },
    },
    setup: (host, options) => void seen.push([host.routes.map(({ path }) => path), options]),
  })

  async function optionsBy(general: Options, ofRoute: Options) {
    seen.length = 0
    const config = {
      server: { name: 'a', version: '1' },
      secrets: ['a secret that is long enough for a test'],
      toolsets: { none: [] },
      routes: { '/a': { toolsets: 'none' }, '/b': { toolsets: 'none', plugins: { limits: limits(ofRoute) } } },
      plugins: { limits: limits(general) },
    }
    const host = await createHost(config, { log: createTestLog() })
    await host.close()
    return Object.fromEntries(seen.map(([[path], options]) => [path, options]))
  }

  it('apply to nested options', async () => {
    const general = { limits: { burst: 3 } }
    const { '/a': options } = await optionsBy(general, {})
    expect(options).to.deep.equal({ limits: { perMinute: 600, burst: 3 }, mode: 'enforce' })
    expect(general).to.deep.equal({ limits: { burst: 3 } })
  })

  it('apply after route options are merged over global options', async () => {
    const { '/a': general, '/b': own } = await optionsBy({ mode: 'shadow', limits: { burst: 3 } }, { limits: {} })
    expect(general).to.deep.equal({ limits: { perMinute: 600, burst: 3 }, mode: 'shadow' })
    expect(own).to.deep.equal({ limits: { perMinute: 600, burst: 10 }, mode: 'shadow' })
  })

  it('are required by the types for options with a guaranteed value', () => {
    definePlugin<Options, Filled>({
      options: {
        type: 'object',
        additionalProperties: false,
        properties: {
          // @ts-expect-error -- no default
          limits: { type: 'object' },
          // @ts-expect-error -- no default
          mode: { type: 'string' },
        },
      },
      setup() {},
    })
  })
})

describe('Host setting defaults', () => {
  it('apply next to given values without changing the config object', async () => {
    const http: { port?: number } = { port: 0 }
    const seen: object[] = []
    const look = definePlugin<Record<never, never>>({
      options: { type: 'object', additionalProperties: false, properties: {} },
      setup: host => void seen.push(host.config.http),
    })
    const config = Object.freeze({
      server: { name: 'a', version: '1' },
      secrets: ['a secret that is long enough for a test'],
      http: Object.freeze(http),
      toolsets: { none: [] },
      routes: { '/': { toolsets: 'none' } },
      plugins: { look: look() },
    })
    await (await createHost(config, { log: createTestLog() })).close()
    expect(seen).to.deep.equal([
      {
        host: '127.0.0.1',
        port: 0,
        backlog: 4096,
        publicUrl: undefined,
        tls: false,
        maxBodySize: 4 * 1024 * 1024,
        keepAliveTimeout: 5_000,
        requestTimeout: 60_000,
        writeTimeout: 30_000,
        allowedHosts: [],
        allowedOrigins: [],
        trustProxy: false,
      },
    ])
    expect(http).to.deep.equal({ port: 0 })
  })
})
