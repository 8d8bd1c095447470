// Tests upstream servers of three nodes: each request of the official clients goes to the next node.
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import * as types from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'chai'
import { journey } from '../fixtures/journey-toolset.ts'
import { sessionToolset } from '../fixtures/session-toolset.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { stopRedis } from '../support/redis-server.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { describeElicitation, describeSessionJourney, listenTo, type Traveller } from '../support/v1-journey.ts'
import {
  createModernTraveller,
  describeCommonJourney,
  describeModernJourney,
  type ModernTraveller,
} from '../support/v2-journey.ts'
import { needsStore, startCluster } from './support/nodes.ts'

for (const revision of ['2026-07-28', '2025-11-25'] as const) {
  describe(`Three nodes in front of a server of ${revision}`, () => {
    let traveller: Traveller
    let modern: ModernTraveller
    const served = [0, 0, 0]
    before(async function () {
      needsStore(this)
      const puppet = createPuppet()
      const origin = await startHost({
        toolsets: { journey, session: [...sessionToolset, puppet.tool] },
        routes: { '/:name': { toolsets: ':name' } },
      })
      const at = (name: string) => ({ url: `${origin.url}/${name}`, prefix: '', revision })
      const { nodes } = await startCluster(3, {
        toolsets: {},
        routes: { '/:name': { toolsets: ':name' } },
        plugins: { upstream: { servers: { journey: at('journey'), session: at('session') } } },
      })
      let next = 0
      const balanced: typeof fetch = (input, init) => {
        const index = next++ % nodes.length
        served[index] = (served[index] ?? 0) + 1
        const { pathname, search } = new URL(String(input))
        return fetch(`${nodes[index]?.url}${pathname}${search}`, init)
      }
      const urlOf = (name: string) => new URL(`http://balanced.example/${name}`)
      const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
      const client = new OldClient({ name: 'official', version: '1.0.0' }, { capabilities })
      traveller = { client, puppet, heard: listenTo(client, types, true) }
      // Its types do not hold under exactOptionalPropertyTypes.
      const transport = new OldTransport(urlOf('session'), { fetch: balanced })
      await client.connect(transport as Parameters<OldClient['connect']>[0])
      modern = createModernTraveller()
      await modern.client.connect(new StreamableHTTPClientTransport(urlOf('journey'), { fetch: balanced }))
    })
    after(async () => {
      await traveller?.client.close()
      await modern?.client.close()
      await stopHosts()
      await stopRedis()
    })

    describe('for SDK 2.4', () => {
      describeCommonJourney(() => modern.client)
      if (revision === '2026-07-28') describeModernJourney(() => modern, false)
      else
        it('reports that a call waits for its response at another node', async () => {
          const { content, isError } = await modern.client.callTool({ name: 'interview' })
          expect(isError).to.equal(true)
          expect(JSON.stringify(content)).to.match(/at another node\. The call may have been executed/)
        })
    })

    describe('for SDK 1.32 with a session', () => {
      describeSessionJourney(() => traveller, false)
      describeElicitation(() => traveller)
    })

    describe('for both', () => {
      it('uses every node', () => expect(Math.min(...served)).to.be.at.least(5))
    })
  })
}
