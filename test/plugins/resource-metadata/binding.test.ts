// Tests DPoP fields in protected resource metadata against the auth plugin of the same routes.
import { expect } from 'chai'
import type { Config } from '../../../core/index.ts'
import type { AuthJwtOptions } from '../../../plugins/auth-jwt/options.ts'
import type { ResourceMetadataOptions } from '../../../plugins/resource-metadata/index.ts'
import { expectStopped } from '../../fixtures/start-failure.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { makeKey, toJwk } from '../../support/test-issuer.ts'

afterEach(stopHosts)

const key = makeKey('a')
const jwt = (dpop: AuthJwtOptions['dpop']): AuthJwtOptions => ({
  issuer: 'https://issuer.test',
  keys: [toJwk(key)],
  audience: 'https://mcp.test',
  ...(dpop && { dpop }),
})

function configOf(dpop: AuthJwtOptions['dpop'], said: Partial<ResourceMetadataOptions> = {}, other = dpop) {
  return {
    toolsets: { none: [] },
    routes: {
      '/one': { toolsets: 'none', authorize: true as const },
      '/other': { toolsets: 'none', authorize: true as const, plugins: { 'auth-jwt': jwt(other) } },
    },
    plugins: {
      'transport-streamable': {},
      'auth-jwt': jwt(dpop),
      'resource-metadata': { authorizationServers: ['https://issuer.test'], ...said },
    } as Config['plugins'],
  }
}

/** What the documents of both routes say. */
async function saidBy(config: ReturnType<typeof configOf>) {
  const { url, log } = await startHost(config as Parameters<typeof startHost>[0])
  const read = async (path: string) => {
    const document = (await (await fetch(`${url}/.well-known/oauth-protected-resource${path}`)).json()) as object
    return Object.fromEntries(Object.entries(document).filter(([name]) => name.startsWith('dpop_')))
  }
  const warned = log.filter(({ message }) => message?.startsWith('dpopSigningAlgValuesSupported is published'))
  return { one: await read('/one'), other: await read('/other'), warned: warned.length }
}

const ALL = ['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519', 'PS256', 'RS256']

describe('resource-metadata: DPoP-bound tokens', () => {
  it('omits DPoP fields if dpop is not set or off', async () => {
    for (const dpop of [undefined, { mode: 'off' }] as const) {
      expect(await saidBy(configOf(dpop))).to.deep.equal({ one: {}, other: {}, warned: 0 })
    }
  })

  it('lists the DPoP algorithms, and states where bound tokens are required', async () => {
    const algorithms = ['RS256', 'ES256'] as const
    const required = { dpop_signing_alg_values_supported: ALL, dpop_bound_access_tokens_required: true }
    expect(
      await saidBy(configOf({ mode: 'required' }, {}, { mode: 'optional', algorithms: [...algorithms] })),
    ).to.deep.equal({ one: required, other: { dpop_signing_alg_values_supported: algorithms }, warned: 0 })
  })

  it('prefers its own options', async () => {
    const said = { dpopSigningAlgValuesSupported: ['ES256'], dpopBoundAccessTokensRequired: true }
    const document = { dpop_signing_alg_values_supported: ['ES256'], dpop_bound_access_tokens_required: true }
    const found = await saidBy(configOf({ mode: 'required' }, said))
    expect(found).to.deep.equal({ one: document, other: document, warned: 0 })
    const { warned } = await saidBy(configOf({ mode: 'off' }, { dpopSigningAlgValuesSupported: ['ES256'] }))
    expect(warned).to.equal(1)
  })

  it('states for a shared resource only what applies to all its routes', async () => {
    const one = { resource: 'https://mcp.test' }
    const all = await saidBy(configOf({ mode: 'required' }, one, { mode: 'required', algorithms: ['ES256'] }))
    const both = { dpop_signing_alg_values_supported: ['ES256'], dpop_bound_access_tokens_required: true }
    expect(all.one).to.deep.equal(both)
    const some = await saidBy(configOf({ mode: 'required' }, one, { mode: 'optional', algorithms: ['ES256'] }))
    expect(some.one).to.deep.equal({ dpop_signing_alg_values_supported: ['ES256'] })
  })

  it('fails startup if it requires bound tokens that a route does not', async () => {
    const said = { dpopBoundAccessTokensRequired: true }
    const stop = (config: ReturnType<typeof configOf>, words: RegExp) =>
      expectStopped(config as Parameters<typeof startHost>[0], words)
    await stop(configOf({ mode: 'required' }, said, { mode: 'optional' }), /on routes\['\/other'\]; set dpop/)
    await stop(configOf({ mode: 'off' }, said), /on routes\['\/one'\], routes\['\/other'\]; set dpop/)
    const denied = { dpopBoundAccessTokensRequired: false }
    await stop(
      configOf({ mode: 'required' }, denied, { mode: 'optional' }),
      /refused on routes\['\/one'\]; remove this option/,
    )
  })
})
