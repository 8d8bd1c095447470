// Tests upstream servers of three nodes: each request of the official clients goes to the next node.
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import * as types from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'chai'
import { callTool, questionsIn, type Retry } from '../fixtures/asking-client.ts'
import { journey } from '../fixtures/journey-toolset.ts'
import { sessionToolset } from '../fixtures/session-toolset.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { needsRedis, startRedis, stopRedis } from '../support/redis-server.ts'
import type { RpcAnswer } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { describeElicitation, describeSessionJourney, listenTo, type Traveller } from '../support/v1-journey.ts'
import {
  createModernTraveller,
  describeCommonJourney,
  describeModernJourney,
  type ModernTraveller,
} from '../support/v2-journey.ts'
import { type NodeProcess, startNode } from './support/node-process.ts'
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
      const at = (name: string) => ({ url: `${origin.url}/${name}`, prefix: '', revision, asks: { roots: true } })
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
      describeModernJourney(() => modern, false)
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

describe('A held call of three nodes', () => {
  const nodes: NodeProcess[] = []
  before(async function () {
    needsRedis(this)
    const { url } = await startHost({ toolsets: { journey }, routes: { '/': { toolsets: 'journey' } } })
    const redis = await startRedis()
    const secrets = 'a secret for tests that is long enough to be one'
    const env = { REDIS_URL: redis.url, MCP_HOST_SECRETS: secrets, UPSTREAM: `${url}/` }
    const config = 'test/cluster/support/journey.config.ts'
    for (let count = 0; count < 3; count++) nodes.push(await startNode({ config, port: 0, env }))
  })
  after(async () => {
    await Promise.all(nodes.map(node => node.kill()))
    await stopHosts()
    await stopRedis()
  })

  const call = (node: number, retry?: Retry) => callTool(`${nodes[node]?.url}/far`, 'interview', retry)
  const asked = ({ message }: RpcAnswer) => Object.values(questionsIn(message))
  const retryOf = ({ message }: RpcAnswer): Retry => ({
    state: message.result.requestState,
    answers: Object.fromEntries(
      Object.entries(questionsIn(message)).map(([key, question]) => [key, ANSWERS[question]]),
    ),
  })

  for (const [first, second] of [
    [0, 1],
    [1, 2],
    [2, 0],
    [0, 0],
  ] as const) {
    it(`of the first node continues with responses at the nodes ${first + 1} and ${second + 1}`, async () => {
      const one = await call(0)
      expect(asked(one)).to.deep.equal(['Who are you?'])
      const two = await call(first, retryOf(one))
      expect(asked(two)).to.have.members(['roots/list', 'sampling/createMessage'])
      const { result } = (await call(second, retryOf(two))).message
      expect(result.structuredContent).to.deep.equal({
        ...{ action: 'accept', content: { name: 'Grace' } },
        ...{ folders: ['file:///home/grace'], model: 'a model' },
      })
      expect((await call(first, retryOf(two))).message.result.content[0].text).to.include('MH2952')
    })
  }

  it('ends in an error if the first node is killed', async () => {
    const one = await call(0)
    await nodes[0]?.kill()
    for (const node of [1, 2]) {
      const { result } = (await call(node, retryOf(one))).message
      expect(result.isError).to.equal(true)
      expect(result.content[0].text).to.match(/may have been executed.*MH2952/)
    }
  })
})

const ANSWERS: Readonly<Record<string, object>> = {
  'Who are you?': { action: 'accept', content: { name: 'Grace' } },
  'roots/list': { roots: [{ uri: 'file:///home/grace' }] },
  'sampling/createMessage': { role: 'assistant', content: { type: 'text', text: 'Hello.' }, model: 'a model' },
}
