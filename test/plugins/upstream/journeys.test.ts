// Tests the official clients of both SDKs in front of another host, in every protocol that connects two hosts.
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import * as types from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'chai'
import { MODERN_REVISION } from '../../../core/transport.ts'
import { journey } from '../../fixtures/journey-toolset.ts'
import { sessionToolset } from '../../fixtures/session-toolset.ts'
import { createPuppet, type Puppet } from '../../support/puppet-tool.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { describeElicitation, describeSessionJourney, listenTo, type Traveller } from '../../support/v1-journey.ts'
import {
  createModernTraveller,
  describeCommonJourney,
  describeModernJourney,
  type ModernTraveller,
} from '../../support/v2-journey.ts'

const PROTOCOLS = {
  '2026-07-28': { path: '', revision: '2026-07-28' },
  '2025-11-25': { path: '', revision: '2025-11-25' },
  'HTTP+SSE': { path: '/sse', revision: '2024-11-05' },
} as const

/** A host behind a host, connected by this protocol. */
async function startBoth({ path, revision }: (typeof PROTOCOLS)[keyof typeof PROTOCOLS], puppet: Puppet) {
  const origin = await startHost({
    toolsets: { journey, session: [...sessionToolset, puppet.tool] },
    routes: { '/:name': { toolsets: ':name' } },
    plugins: { 'transport-streamable': {}, 'transport-sse': {} },
  })
  const at = (name: string) => ({ url: `${origin.url}/${name}${path}`, prefix: '', revision, asks: { roots: true } })
  return startHost({
    toolsets: {},
    routes: { '/:name': { toolsets: ':name' } },
    plugins: {
      'transport-streamable': {},
      upstream: { servers: { journey: at('journey'), session: at('session') } },
    },
  })
}

for (const [protocol, kind] of Object.entries(PROTOCOLS)) {
  describe(`A host in front of a host by ${protocol}`, () => {
    let traveller: Traveller
    let modern: ModernTraveller
    before(async () => {
      const puppet = createPuppet()
      const { url } = await startBoth(kind, puppet)
      const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
      const client = new OldClient({ name: 'official', version: '1.0.0' }, { capabilities })
      traveller = { client, puppet, heard: listenTo(client, types, true) }
      // Its types do not hold under exactOptionalPropertyTypes.
      const transport = new OldTransport(new URL('/session', url)) as Parameters<OldClient['connect']>[0]
      await client.connect(transport)
      modern = createModernTraveller()
      await modern.client.connect(new StreamableHTTPClientTransport(new URL('/journey', url)))
    })
    after(async () => {
      await traveller?.client.close()
      await modern?.client.close()
      await stopHosts()
    })

    describe('for SDK 2.4', () => {
      it('negotiates 2026-07-28', () => {
        expect(modern.client.getNegotiatedProtocolVersion()).to.equal(MODERN_REVISION)
      })
      describeCommonJourney(() => modern.client)
      describeModernJourney(() => modern, false)
    })

    // Adds a tool to every route.
    describe('for SDK 1.32 with a session', () => {
      describeSessionJourney(() => traveller, false)
      describeElicitation(() => traveller)
    })
  })
}
