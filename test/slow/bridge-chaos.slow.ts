// Tests auth-bridge on three nodes that share Redis, killed one after the other while users sign in and clients refresh
// tokens.
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'chai'
import { type NodeProcess, startNode } from '../cluster/support/node-process.ts'
import { Person } from '../cluster/support/retrying-user.ts'
import { freePort } from '../support/free-port.ts'
import { type IdentityProvider, startIdentityProvider, stopIdentityProviders } from '../support/identity-provider.ts'
import { needsRedis, type RedisServer, startRedis } from '../support/redis-server.ts'
import { startTcpBalancer, type TcpBalancer } from '../support/tcp-balancer.ts'

const NODES = 3
const PEOPLE = 8
const REFRESHES = 10
/** Milliseconds between a restart and the next kill. */
const BETWEEN_KILLS = 400

const users = Array.from({ length: PEOPLE }, (_, index) => ({
  sub: `person-${index}`,
  email: `person-${index}@acme.example`,
}))

describe('auth-bridge: three nodes killed one after the other', () => {
  let redis: RedisServer
  let idp: IdentityProvider
  let balancer: TcpBalancer
  const nodes: NodeProcess[] = []
  /** What killed nodes printed. */
  const outputs: string[] = []
  let restart: (place: number) => Promise<void>

  before(async function () {
    needsRedis(this)
    redis = await startRedis()
    idp = await startIdentityProvider({ users })
    const ports = await Promise.all(Array.from({ length: NODES }, freePort))
    balancer = await startTcpBalancer(ports)
    idp.redirects.add(`${balancer.url}/auth/callback`)
    const env = {
      MCP_HOST_SECRETS: randomBytes(32).toString('base64'),
      REDIS_URL: redis.url,
      PUBLIC_URL: balancer.url,
      PROVIDER: JSON.stringify(idp.options()),
    }
    restart = async place => {
      nodes[place] = await startNode({ config: 'test/cluster/support/bridge.config.ts', port: ports[place] ?? 0, env })
    }
    await Promise.all(ports.map((_, place) => restart(place)))
  })
  after(async () => {
    await balancer?.stop()
    await Promise.all(nodes.map(node => node.kill()))
    await redis?.remove()
    await stopIdentityProviders()
  })

  /** People live through it while nodes are killed. */
  async function liveThrough(journeys: number) {
    const stop = new AbortController()
    let kills = 0
    async function killOnAndOn() {
      for (let place = 0; !stop.signal.aborted; place = (place + 1) % NODES) {
        await nodes[place]?.kill()
        outputs.push(nodes[place]?.output ?? '')
        kills++
        await restart(place)
        await pause(BETWEEN_KILLS)
      }
    }
    outputs.length = 0
    const people = users.map(({ sub }) => new Person(sub, balancer.url, idp.origin))
    const killing = killOnAndOn()
    try {
      await Promise.all(people.map(person => person.live(journeys, REFRESHES)))
    } finally {
      stop.abort()
      await killing
    }
    const sum = (count: (person: Person) => number) => people.reduce((total, person) => total + count(person), 0)
    const counted = {
      logins: sum(({ counts }) => counts.logins),
      refreshes: sum(({ counts }) => counts.refreshes),
      signedOut: people.flatMap(({ signedOut }) => signedOut),
      twice: people.flatMap(({ codes }) => [...codes].filter(([, uses]) => uses > 1)),
    }
    console.log(
      `      ${kills} kills; ${counted.logins} logins, ${sum(({ counts }) => counts.begunAgain)} begun again; ` +
        `${counted.refreshes} refreshes, ${sum(({ counts }) => counts.askedAgain)} asked again; ` +
        `signed out ${counted.signedOut.length}; codes used twice ${counted.twice.length}`,
    )
    expect(kills).to.be.greaterThan(0)
    return counted
  }

  const linesOf = (text: string) =>
    [...outputs, ...nodes.map(({ output }) => output)].flatMap(output =>
      output.split('\n').filter(line => line.includes(text)),
    )

  it('ends no login and accepts no authorization code twice', async () => {
    idp.rotates = false
    const { logins, refreshes, signedOut, twice } = await liveThrough(1)
    expect(signedOut).to.deep.equal([])
    expect(twice).to.deep.equal([])
    expect(logins).to.equal(PEOPLE)
    expect(refreshes).to.equal(PEOPLE * REFRESHES)
  })

  it('ends only logins whose rotated upstream refresh token was lost, and logs it', async () => {
    idp.rotates = true
    const { signedOut, twice } = await liveThrough(1)
    const lost = linesOf('a node stopped while it renewed a login').length
    expect(signedOut.length).to.be.at.most(lost)
    expect(twice).to.deep.equal([])
  })
})
