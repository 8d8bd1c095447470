// For `testHost`: an authorization server on loopback that knows the fake tokens.
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { makeClaims, type UnderTest } from '../../core/plugin.ts'
import type { AuthIntrospectionOptions } from './options.ts'

const NAMELESS = 'https://issuer.test'

export async function answerInTest(options: AuthIntrospectionOptions): Promise<UnderTest<AuthIntrospectionOptions>> {
  const known = new Map<string, object>()
  const server = createServer(async (request, response) => {
    const claims = known.get(new URLSearchParams(await text(request)).get('token') ?? '')
    response.setHeader('Content-Type', 'application/json')
    response.end(JSON.stringify({ active: claims !== undefined, ...claims }))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  server.unref()
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/introspect`
  const { endpoint: real, issuer = URL.canParse(real) ? new URL(real).origin : NAMELESS, audience, claims } = options
  return {
    options: { ...options, endpoint, issuer, clientId: 'test', clientSecret: 'test' },
    issue(user, resource, lifetime) {
      const token = randomBytes(16).toString('base64url')
      const exp = Math.floor(Date.now() / 1_000) + lifetime
      known.set(token, { iss: issuer, aud: [audience ?? resource].flat()[0], exp, ...makeClaims(user, claims) })
      return token
    },
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
