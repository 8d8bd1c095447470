// Tests the redirect of browsers at `/`, which names open routes only.
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

after(stopHosts)

const PLUGINS = { 'transport-streamable': {}, 'dev-auth-server': {}, 'auth-jwt': {}, 'resource-metadata': {} }

async function locationAt(routes: object): Promise<string | null> {
  const { url } = await startHost({
    toolsets: { all: [defineTool({ name: 'x', handler: () => 'x' })] },
    routes: routes as never,
    plugins: PLUGINS as never,
  })
  const response = await fetch(`${url}/`, { headers: { Accept: 'text/html' }, redirect: 'manual' })
  await response.body?.cancel()
  return response.headers.get('location')
}

describe('A browser at /', () => {
  it('is redirected to the first open route', async () => {
    const open = { toolsets: 'all' }
    expect(await locationAt({ '/secret': { ...open, authorize: true }, '/one': open, '/two': open })).to.equal('/one')
  })

  it('is not redirected to a protected route', async () => {
    expect(await locationAt({ '/secret': { toolsets: 'all', authorize: true } })).to.equal(null)
  })
})
