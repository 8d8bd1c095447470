// `mcp-host proxy --protocol auto`: clients that open with `initialize` at a host of ours that speaks 2026-07-28 alone.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import * as types from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'chai'
import { removeFolders } from '../config/folder.ts'
import { sessionToolset } from '../fixtures/session-toolset.ts'
import { startModernHost } from '../support/modern-host.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { stopHosts } from '../support/start-host.ts'
import { describeSessionJourney, listenTo, type Traveller } from '../support/v1-journey.ts'
import { connectOlder, type OlderEnd } from './older-client.ts'
import { endRelays, useOwnHome } from './proxy-client.ts'

describe('mcp-host proxy --protocol auto, with @modelcontextprotocol/sdk 1.32 in front of 2026-07-28 alone', () => {
  let traveller: Traveller
  let end: OlderEnd
  before(async () => {
    await useOwnHome()
    const puppet = createPuppet()
    const { url } = await startModernHost({ journey: [...sessionToolset, puppet.tool] })
    const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
    const client = new Client({ name: 'official', version: '1.0.0' }, { capabilities })
    traveller = { client, puppet, heard: listenTo(client, types, true) }
    end = await connectOlder(client, `${url}/mcp`, {
      protocol: 'auto',
      verbose: Boolean(process.env['LOUD']),
    } as object)
  })
  after(async () => {
    await traveller.client.close()
    await end.relay.ended
    await endRelays()
    await stopHosts()
    await removeFolders()
  })

  describeSessionJourney(() => traveller)

  it('answers what a tool asks of the user: a form, then a page to visit', async () => {
    const { client, heard } = traveller
    heard.asked.length = 0
    const { content } = await client.callTool({ name: 'ask_the_user' })
    expect(content).to.deep.equal([{ type: 'text', text: '{"name":"Ada","consent":"accept"}' }])
    expect(heard.asked).to.deep.equal(['form: Who are you?', 'url: Please consent.'])
  })
})
