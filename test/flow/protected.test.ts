// Tests the authorization flow of the official client against the protected example: discovery, registration, sign-in
// and scope step-up.
import {
  Client,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client'
import { expect } from 'chai'
import type { Host } from '../../core/host.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { Browser, readClaims } from '../support/form-browser.ts'
import { startProtectedExample } from '../support/protected-example.ts'

const REDIRECT = 'http://127.0.0.1:9/callback'

type ClientInformation = Parameters<NonNullable<OAuthClientProvider['saveClientInformation']>>[0]
type Tokens = Parameters<OAuthClientProvider['saveTokens']>[0]

/** Keeps what an application keeps, and has a person who clicks in a browser. */
class Person implements OAuthClientProvider {
  readonly redirectUrl = REDIRECT
  readonly clientMetadata = {
    client_name: 'official client',
    redirect_uris: [REDIRECT],
    grant_types: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_method: 'none',
  }
  /** The scopes of each authorization that was asked for, sorted; without the one for refresh tokens. */
  readonly asked: string[][] = []
  readonly #name: string
  readonly #browser: Browser
  #client: ClientInformation | undefined
  #tokens: Tokens | undefined
  #discovery: OAuthDiscoveryState | undefined
  #verifier = ''
  #answer: URLSearchParams | undefined

  constructor(name: string, home: string) {
    this.#name = name
    this.#browser = new Browser(home)
  }

  clientInformation = () => this.#client
  tokens = () => this.#tokens
  codeVerifier = () => this.#verifier
  saveClientInformation(client: ClientInformation) {
    this.#client = client
  }
  saveTokens(tokens: Tokens) {
    this.#tokens = tokens
  }
  discoveryState = () => this.#discovery
  saveDiscoveryState(state: OAuthDiscoveryState) {
    this.#discovery = state
  }
  saveCodeVerifier(verifier: string) {
    this.#verifier = verifier
  }

  async redirectToAuthorization(address: URL) {
    const scopes = address.searchParams.get('scope')?.split(' ') ?? []
    this.asked.push(scopes.filter(scope => scope !== 'offline_access').sort())
    this.#answer = (await this.#browser.allow(address, this.#name)).searchParams
  }

  /** What the browser brought back last. */
  takeAnswer(): URLSearchParams {
    const answer = this.#answer
    if (!answer) throw new Error('nobody was asked')
    this.#answer = undefined
    return answer
  }

  get claims() {
    return readClaims(this.#tokens?.access_token ?? '')
  }
}

let host: Host
before(async () => {
  host = await startProtectedExample()
})
after(() => host.close({ grace: 0 }))

for (const [era, mode] of [
  ['2026-07-28', 'auto'],
  ['the older revisions', 'legacy'],
] as const)
  describe(`OAuth flow of the official client (${era}) against the protected example`, () => {
    const clients: Client[] = []
    afterEach(() => Promise.all(clients.splice(0).map(client => client.close())))

    /** Connects, is sent to sign in, and connects again as an application does after its redirect. */
    async function signIn(name: string) {
      const person = new Person(name, host.url)
      const connect = () => {
        const transport = new StreamableHTTPClientTransport(new URL(`${host.url}/`), { authProvider: person })
        const client = new Client({ name: 'official', version: '1.0.0' }, { versionNegotiation: { mode } })
        clients.push(client)
        return { client, transport }
      }
      const first = connect()
      const refused = await rejectionOf(first.client.connect(first.transport))
      await first.transport.finishAuth(person.takeAnswer())
      const { client, transport } = connect()
      await client.connect(transport)
      return { person, client, transport, refused }
    }

    it('discovers the authorization server from the 401, registers, and requests the challenged scope', async () => {
      const { person, refused } = await signIn('ada')
      expect(refused).to.have.property('name', 'UnauthorizedError')
      expect(person.asked).to.deep.equal([['mcp.tools']])
      expect(person.claims).to.include({
        iss: `${host.url}/dev-auth`,
        aud: host.url,
        sub: 'ada',
        scope: 'mcp.tools',
      })
    })

    it('lists and calls the tools that its scope allows', async () => {
      const { client } = await signIn('ada')
      const names = (await client.listTools()).tools.map(({ name }) => name)
      expect(names).to.include('current_time').and.to.not.include('clear_cache')
      const { structuredContent, isError } = await client.callTool({
        name: 'current_time',
        arguments: { zones: ['UTC'] },
      })
      expect(isError ?? false).to.equal(false)
      expect(structuredContent).to.be.an('object')
    })

    it('steps up its scope after a 403 and retries the call successfully', async () => {
      const { client, person, transport } = await signIn('ada')
      const refused = await rejectionOf(client.callTool({ name: 'clear_cache' }))
      expect(refused).to.have.property('name', 'UnauthorizedError')
      expect(person.asked).to.deep.equal([['mcp.tools'], ['mcp.admin', 'mcp.tools']])
      await transport.finishAuth(person.takeAnswer())
      const { content } = await client.callTool({ name: 'clear_cache' })
      expect(content).to.deep.equal([{ type: 'text', text: 'The cache was cleared for ada.' }])
      expect((await client.listTools()).tools.map(({ name }) => name)).to.include('clear_cache')
    })

    it('does not loop when a role is missing that no scope grants', async () => {
      const { client, person, transport } = await signIn('bob')
      await rejectionOf(client.callTool({ name: 'clear_cache' }))
      await transport.finishAuth(person.takeAnswer())
      const refused = await rejectionOf(client.callTool({ name: 'clear_cache' }))
      expect(refused).to.not.have.property('name', 'UnauthorizedError')
      expect(person.asked).to.have.length(2)
    })
  })
