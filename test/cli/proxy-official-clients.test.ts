// Tests `mcp-host proxy` with the official clients of both generations, also over HTTP+SSE.
import { Client as NewClient } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import * as types from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'chai'
import { removeFolders } from '../config/folder.ts'
import { sessionToolset } from '../fixtures/session-toolset.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { describeSessionJourney, listenTo, type Traveller } from '../support/v1-journey.ts'
import { endRelays } from './proxy-client.ts'
import { connectThrough, type ProxiedEnd } from './proxy-official-client.ts'
import { startSdkServer, stopSdkServers } from './sdk-server.ts'

const INFO = { name: 'official', version: '1.0.0' }
const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }

for (const [name, path] of [
  ['HTTP+SSE', '/mcp/sse'],
  ['Streamable HTTP', '/mcp'],
] as const) {
  describe(`mcp-host proxy: SDK 1.32 in front of ${name}`, () => {
    let traveller: Traveller
    let end: ProxiedEnd
    before(async () => {
      const puppet = createPuppet()
      const { url } = await startHost({
        toolsets: { journey: [...sessionToolset, puppet.tool] },
        routes: { '/mcp': { toolsets: 'journey' } },
        plugins: { 'transport-streamable': {}, 'transport-sse': {} },
      })
      const client = new Client(INFO, { capabilities: CAPABILITIES })
      traveller = { client, puppet, heard: listenTo(client, types, true) }
      end = await connectThrough(client, url + path, {})
    })
    after(async () => {
      await traveller.client.close()
      await end.relay.ended
      await endRelays()
      await stopHosts()
      await removeFolders()
    })

    describeSessionJourney(() => traveller)

    it('responds to requests of a tool: a form, then a URL', async () => {
      const { client, heard } = traveller
      heard.asked.length = 0
      const { content } = await client.callTool({ name: 'ask_the_user' })
      expect(content).to.deep.equal([{ type: 'text', text: '{"name":"Ada","consent":"accept"}' }])
      expect(heard.asked).to.deep.equal(['form: Who are you?', 'url: Please consent.'])
    })
  })
}

describe('mcp-host proxy: the official clients of both generations', () => {
  after(async () => {
    await endRelays()
    await stopSdkServers()
    await stopHosts()
    await removeFolders()
  })

  it('call tools of SDK 1.x over HTTP+SSE and Streamable HTTP', async () => {
    const sdk = await startSdkServer()
    const seen: string[] = []
    for (const [server, to] of [
      ['HTTP+SSE', sdk.sse],
      ['2025-11-25', sdk.streamable],
    ] as const) {
      for (const [name, client] of [
        ['1.32', new Client(INFO)],
        ['2.4', new NewClient(INFO, { versionNegotiation: { mode: 'auto' } })],
        ['2.4 as of old', new NewClient(INFO, { versionNegotiation: { mode: 'legacy' } })],
      ] as const) {
        const end = await connectThrough(client, to, {})
        const { content } = await (client as Client).callTool({ name: 'add', arguments: { a: 1, b: 2 } })
        const [{ text }] = content as [{ text: string }]
        seen.push(`${name} at ${server}: ${text}`)
        await client.close()
        await end.relay.ended
      }
    }
    expect(seen).to.have.length(6)
    for (const line of seen) expect(line).to.match(/: \{"sum":3\}$/)
  })
})
