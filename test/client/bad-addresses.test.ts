// Servers with public names that send the client to places inside its own network (SSRF): into every place where a server
// can write an address, each kind of address is put. The client goes to none, and says which option would allow it.
import { expect } from 'chai'
import type { AuthError } from '../../client/index.ts'
import { type Account, callServer, judge, PUBLIC, printAccounts, publicWorld, type World } from './support/bad-world.ts'
import { type RecordingServer, startRecordingServer, stopServers } from './support/fake-servers.ts'

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

describe('a public server that sends the client to', () => {
  const accounts: Account[] = []
  let world: World
  let canary: RecordingServer
  beforeEach(async () => {
    world = await publicWorld()
    canary = await startRecordingServer(() => ({ status: 200, body: {} }))
  })
  afterEach(stopServers)
  after(() => {
    const kinds = new Set(accounts.map(({ what, code }) => `${what.split(': ')[0]}: ${code}`))
    const rows = [...kinds].map(kind => {
      const [what = '', code = ''] = kind.split(': ')
      const all = accounts.filter(account => account.what.startsWith(`${what}: `) && account.code === code)
      const requests = Math.max(...all.map(account => account.requests))
      const looked = all.reduce((sum, account) => sum + account.looked, 0)
      return { what: `${what}, ${all.length} addresses`, code, requests, looked }
    })
    printAccounts(`${accounts.length} pairs of place and address (requests: the most of one pair)`, rows)
  })

  it('nowhere else gets its token: the places are good when the addresses are', async () => {
    const { status } = await callServer(world, { what: 'control' })
    expect([status, world.strays]).to.deep.equal([200, []])
  })

  for (const [place, write] of Object.entries(PLACES)) {
    it(`a private place, by ${place}: goes nowhere`, async () => {
      for (const [address, code] of addresses(new URL(canary.url).port)) {
        world = await publicWorld()
        const make = () => write(world, address)
        accounts.push(await judge(world, { what: `${place}: ${address}`, code, within: 6, make }))
        expect([canary.count(), world.strays], address).to.deep.equal([0, []])
      }
    })
  }

  it('a place that the caller allows is another matter, and the error has said how', async () => {
    const { rs } = world
    rs.settings.challenges = [`Bearer resource_metadata="${canary.url}/"`]
    const { thrown } = await callServer(world, { what: 'not allowed' })
    const { host } = new URL(canary.url)
    expect((thrown as AuthError).fix).to.equal(`if that is meant, list "${host}" in networkPolicy.allowHosts`)
    const options = { networkPolicy: { allowHosts: [host] } }
    await callServer(world, { what: 'allowed', options })
    expect(world.strays[0]).to.equal(`${canary.url}/`)
  })

  it('its own resource under another name: no authorization request is made', async () => {
    world.rs.settings.metadata = { ...world.rs.settings.metadata, resource: 'https://victim.example/mcp' }
    const bad = { what: 'resource: of a victim', code: 'resource_mismatch', within: 3, make: () => {} }
    accounts.push(await judge(world, bad))
    expect(world.logins).to.deep.equal([])
    world.rs.settings.metadata = { ...world.rs.settings.metadata, resource: `${PUBLIC.server}/mcp` }
    expect((await callServer(world, { what: 'corrected' })).status).to.equal(200)
  })
})
