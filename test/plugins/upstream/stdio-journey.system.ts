// Tests the official clients in front of `mcp-host stdio`, whose tools are those of upstream servers over HTTP and stdio.
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import * as types from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'chai'
import { MODERN_REVISION } from '../../../core/transport.ts'
import { cliCommand } from '../../cli/run-cli.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { journey } from '../../fixtures/journey-toolset.ts'
import { sessionToolset } from '../../fixtures/session-toolset.ts'
import { eventually } from '../../support/eventually.ts'
import { isAlive } from '../../support/is-alive.ts'
import { createPuppet } from '../../support/puppet-tool.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { describeElicitation, describeSessionJourney, listenTo, type Traveller } from '../../support/v1-journey.ts'
import {
  createModernTraveller,
  describeCommonJourney,
  describeModernJourney,
  type ModernTraveller,
} from '../../support/v2-journey.ts'

const COUNTER = [process.execPath, join(import.meta.dirname, 'support/stdio-server.mjs')]

/** Returns the parameters of a client's process: the host of this config, on this route. */
async function hostOn(route: string, servers: object) {
  const [command = '', ...args] = cliCommand(['stdio', '--route', route])
  const cwd = await makeFolder({
    'mcp.config.json': JSON.stringify({
      server: { name: 'test-host', version: '1.2.3' },
      routes: { '/:name': { toolsets: ':name' } },
      plugins: { 'transport-streamable': {}, upstream: { servers } },
    }),
  })
  return { command, args, cwd, stderr: 'ignore' as const }
}

describe('mcp-host stdio with upstream servers', () => {
  let traveller: Traveller
  let modern: ModernTraveller
  before(async () => {
    const puppet = createPuppet()
    const origin = await startHost({
      toolsets: { journey, session: [...sessionToolset, puppet.tool] },
      routes: { '/:name': { toolsets: ':name' } },
    })
    const servers = Object.fromEntries(
      ['journey', 'session'].map(name => [name, { url: `${origin.url}/${name}`, prefix: '', asks: { roots: true } }]),
    )
    const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
    const client = new OldClient({ name: 'official', version: '1.0.0' }, { capabilities })
    traveller = { client, puppet, heard: listenTo(client, types, true) }
    await client.connect(new OldTransport(await hostOn('/session', servers)))
    modern = createModernTraveller()
    await modern.client.connect(new StdioClientTransport(await hostOn('/journey', servers)))
  })
  after(async () => {
    await traveller?.client.close()
    await modern?.client.close()
    await stopHosts()
    await removeFolders()
  })

  describe('for SDK 2.4', () => {
    it('negotiates 2026-07-28', () => {
      expect(modern.client.getNegotiatedProtocolVersion()).to.equal(MODERN_REVISION)
    })
    describeCommonJourney(() => modern.client)
    describeModernJourney(() => modern, false, false)
  })

  describe('for SDK 1.32', () => {
    describeSessionJourney(() => traveller, false)
    describeElicitation(() => traveller)
  })

  it('keeps the state of a stdio server between calls, and ends its processes with the client', async () => {
    const client = new Client({ name: 'official', version: '1.0.0' })
    const counter = { command: COUNTER, prefix: '' }
    await client.connect(new StdioClientTransport(await hostOn('/counter', { counter })))
    const call = async (name: string) =>
      ((await client.callTool({ name, arguments: {} })).content as Array<{ text: string }>)[0]?.text ?? ''
    expect([await call('count'), await call('count')]).to.deep.equal(['1', '2'])
    const pids = (await call('pids')).split(' ').map(Number)
    expect(pids.map(isAlive)).to.deep.equal([true, true])
    await client.close()
    await eventually('the processes end', () => !pids.some(isAlive))
  })
})
