// Tests CORS options at startup: errors and warnings.
import { expect } from 'chai'
import type { CorsOptions } from '../../../plugins/cors/index.ts'
import { hello } from '../../fixtures/plugins.ts'
import { expectStopped } from '../../fixtures/start-failure.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { APP, believeBearer, preflight } from './preflight.ts'

const config = (policies: CorsOptions['policies'], cors = 'browser') => ({
  toolsets: { all: [hello] },
  routes: { '/': { toolsets: 'all', cors } },
  plugins: { 'transport-streamable': {}, cors: { policies } },
})

describe('cors: startup', () => {
  after(stopHosts)

  it('fails for an undefined policy of a route, and suggests the nearest name', async () => {
    const policies = { browser: { origins: [APP] }, mobile: { origins: [APP] } }
    await expectStopped(config(policies, 'broswer'), /"broswer".*"browser"/)
    await expectStopped(
      config(policies, 'partners'),
      'routes[\'/\'].cors: there is no policy "partners"; available: browser, mobile',
    )
    await expectStopped(config({}, 'partners'), /"partners"/)
  })

  it('fails if a route names a policy but the plugin is off for it', async () => {
    const { plugins, ...rest } = config({ browser: { origins: [APP] } })
    await expectStopped({ ...rest, plugins: { ...plugins, cors: false } }, /"browser"/)
  })

  it('fails if any origin can send credentials, or if origins are listed next to *', async () => {
    await expectStopped(
      config({ browser: { origins: ['*'], credentials: true } }),
      'credentials need a list of origins',
    )
    await expectStopped(
      config({ browser: { origins: [APP, '*'] } }),
      'policies.browser.origins: "*" cannot be combined',
    )
  })

  it('fails for an origin with a path, a pattern or no scheme', async () => {
    for (const origin of [`${APP}/`, `${APP}/app`, 'https://*.acme.example', 'app.acme.example', 'null', '']) {
      await expectStopped(config({ browser: { origins: [origin] } }), 'plugins.cors.policies.browser.origins[0]')
    }
    await expectStopped(config({ browser: { origins: [] } }), 'plugins.cors.policies.browser.origins')
  })

  it('uses policies of a route instead of the general ones', async () => {
    const other = 'https://other.acme.example'
    const { plugins, toolsets } = config({ browser: { origins: [APP] } })
    const route = { toolsets: 'all', cors: 'browser', authorize: true as const }
    const special = { ...route, plugins: { cors: { policies: { browser: { origins: [other] } } } } }
    const { url } = await startHost({
      toolsets,
      routes: { '/': route, '/special': special },
      plugins: { ...plugins, identify: believeBearer() },
    })
    const status = async (path: string, Origin: string) => (await preflight(`${url}${path}`, { Origin })).status
    expect([await status('/', APP), await status('/', other)]).to.deep.equal([204, 403])
    expect([await status('/special', APP), await status('/special', other)]).to.deep.equal([403, 204])
  })

  it('warns about any origin only on a route without required authentication', async () => {
    const { plugins, ...rest } = config({ browser: { origins: ['*'] } })
    const open = await startHost({ ...rest, plugins })
    const [line] = open.log.filter(({ level }) => level === 'warn')
    expect(line).to.include({ plugin: 'cors', route: '/' })
    expect(line?.message).to.contain('any website')
    const routes = { '/': { toolsets: 'all', cors: 'browser', authorize: true as const } }
    const guarded = await startHost({ ...rest, routes, plugins: { ...plugins, identify: believeBearer() } })
    expect(guarded.log.filter(({ level, plugin }) => level === 'warn' && plugin === 'cors')).to.deep.equal([])
  })
})
