// Tests SSRF protection: a public server names private addresses in every field that can hold a URL.
import { expect } from 'chai'
import type { AuthError } from '../../client/index.ts'
import { selectCases } from '../support/thorough.ts'
import { type RecordingServer, startRecordingServer, stopServers } from './support/fake-servers.ts'
import { callServer, judge, PUBLIC, publicWorld, type World } from './support/faulty-server-setup.ts'

/** Where a server can send the client to. */
const PLACES: Record<string, (world: World, address: string) => void> = {
  'resource_metadata of a challenge': ({ rs }, address) => {
    rs.settings.challenges = [`Bearer resource_metadata="${address}"`]
  },
  'a redirect of the resource metadata': ({ rs }, address) =>
    rs.failNext('/.well-known/oauth-protected-resource/mcp', { status: 302, headers: { Location: address } }),
  authorization_servers: ({ rs }, address) => {
    rs.settings.metadata = { ...rs.settings.metadata, authorization_servers: [address] }
  },
  'a redirect of the server metadata': ({ as }, address) =>
    as.failNext('/.well-known/oauth-authorization-server', { status: 302, headers: { Location: address } }),
}
for (const name of ['authorization_endpoint', 'token_endpoint', 'registration_endpoint']) {
  PLACES[name] = ({ as }, address) => {
    as.settings.metadata = { ...as.settings.metadata, [name]: address }
  }
}

/** What no public server may lead to, and the code of the refusal. */
const addresses = (port: string): ReadonlyArray<readonly [string, string]> => [
  [`http://127.0.0.1:${port}/`, 'blocked_address'],
  [`http://localhost:${port}/`, 'blocked_address'],
  [`http://[::1]:${port}/`, 'blocked_address'],
  [`https://127.0.0.1:${port}/`, 'blocked_address'],
  [`https://2130706433:${port}/`, 'blocked_address'],
  [`https://0x7f.1:${port}/`, 'blocked_address'],
  [`https://[::ffff:127.0.0.1]:${port}/`, 'blocked_address'],
  [`https://0.0.0.0:${port}/`, 'blocked_address'],
  ['https://169.254.169.254/latest/meta-data', 'blocked_address'],
  ['https://[fe80::1]/', 'blocked_address'],
  ['https://10.0.0.1/', 'blocked_address'],
  ['https://192.168.1.1/', 'blocked_address'],
  ['https://[fd00::1]/', 'blocked_address'],
  ['https://router.local/', 'blocked_address'],
  ['https://metadata.google.internal/', 'blocked_address'],
  ['http://169.254.169.254/latest/meta-data', 'insecure_endpoint'],
  ['http://other.example/', 'insecure_endpoint'],
  ['https://user:password@other.example/', 'insecure_endpoint'],
  ['ftp://other.example/', 'insecure_endpoint'],
  ['file:///etc/passwd', 'insecure_endpoint'],
  ['data:application/json,{}', 'insecure_endpoint'],
]

describe('SSRF: private addresses named by a public server', () => {
  let world: World
  let canary: RecordingServer
  beforeEach(async () => {
    world = await publicWorld()
    canary = await startRecordingServer(() => ({ status: 200, body: {} }))
  })
  afterEach(stopServers)

  it('control: the client logs in if all addresses are public', async () => {
    const { status } = await callServer(world, { what: 'control' })
    expect([status, world.strays]).to.deep.equal([200, []])
  })

  for (const [place, write] of Object.entries(PLACES)) {
    it(`are not contacted in ${place}`, async () => {
      const all = addresses(new URL(canary.url).port)
      const coded = (code: string) => all.filter(([, expected]) => expected === code)
      // All addresses in one place, and a sample in the others.
      const sample = [...selectCases(coded('blocked_address'), 4), ...selectCases(coded('insecure_endpoint'), 2)]
      for (const [address, code] of place === 'authorization_servers' ? all : sample) {
        world = await publicWorld()
        const make = () => write(world, address)
        if (code === 'insecure_endpoint' && place === 'resource_metadata of a challenge') {
          // Ignored: the document is at its well-known location.
          make()
          expect((await callServer(world, { what: `${place}: ${address}` })).status).to.equal(200)
        } else await judge(world, { what: `${place}: ${address}`, code, within: 6, make })
        expect([canary.count(), world.strays], address).to.deep.equal([0, []])
      }
    })
  }

  it('are contacted if the caller allows them, as the error advises', async () => {
    const { rs } = world
    rs.settings.challenges = [`Bearer resource_metadata="${canary.url}/"`]
    const { thrown } = await callServer(world, { what: 'not allowed' })
    const { host } = new URL(canary.url)
    expect((thrown as AuthError).fix)
      .to.include(`"${host}"`)
      .and.include('networkPolicy.allowHosts')
    const options = { networkPolicy: { allowHosts: [host] } }
    await callServer(world, { what: 'allowed', options })
    expect(world.strays[0]).to.equal(`${canary.url}/`)
  })

  it('a foreign resource leads to no authorization request (audience)', async () => {
    world.rs.settings.metadata = { ...world.rs.settings.metadata, resource: 'https://victim.example/mcp' }
    const bad = { what: 'resource: of a victim', code: 'resource_mismatch', within: 3, make: () => {} }
    await judge(world, bad)
    expect(world.logins).to.deep.equal([])
    world.rs.settings.metadata = { ...world.rs.settings.metadata, resource: `${PUBLIC.server}/mcp` }
    expect((await callServer(world, { what: 'corrected' })).status).to.equal(200)
  })
})
