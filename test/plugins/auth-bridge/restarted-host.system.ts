// Real clients at a host that came back: with its secrets but without what it kept in memory, and with other secrets, so that
// it does not know its clients any more.
import { expect } from 'chai'
import type { StartedBridge } from '../../support/bridge.ts'
import { connectionsClosed } from '../../support/fetch-connections.ts'
import { freePort } from '../../support/free-port.ts'
import { stopIdentityProviders } from '../../support/identity-provider.ts'
import { stopHosts } from '../../support/start-host.ts'
import { Person, stopLandings } from './browser-user.ts'
import { APPLICATIONS, type Application } from './real-clients.ts'
import { startWithScopes } from './scoped-bridge.ts'

const SECRETS = ['the first secret of a host, long enough', 'the other secret of a host, long enough']

describe('Real clients after a host restart', () => {
  const applications: Application[] = []
  afterEach(async () => {
    await Promise.all(applications.splice(0).map(application => application.close()))
    await stopHosts()
  })
  after(async () => {
    await stopLandings()
    await stopIdentityProviders()
  })

  /** The host of a bridge again, at the same address, in front of the same provider. */
  async function again({ host, idp, url }: StartedBridge, secret: string): Promise<StartedBridge> {
    await host.close({ grace: 0 })
    const port = Number(new URL(url).port)
    await connectionsClosed(port)
    return startWithScopes('10m', {
      idp,
      config: { http: { port }, secrets: [secret] },
    })
  }

  for (const { name, start } of APPLICATIONS)
    for (const [index, what] of ['with its secrets', 'with other secrets'].entries())
      it(`${name}: logs in once and continues, ${what}`, async () => {
        const [first = '', other = ''] = SECRETS
        const bridge = await startWithScopes('10m', { config: { http: { port: await freePort() }, secrets: [first] } })
        const person = new Person(bridge)
        const application = await start(bridge.resource, person)
        applications.push(application)
        await application.connect()
        const { clientId } = application.kept
        await again(bridge, index === 0 ? first : other)
        application.spoil()
        await application.connect()
        expect(await application.call('whoami')).to.include({ subject: 'ann' })
        expect(person.asked).to.have.length(2)
        expect(application.kept.clientId === clientId, 'the same client').to.equal(index === 0)
      })
})
