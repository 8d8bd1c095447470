// Tests elicitation responses that arrive at another node, including forged ones, and the size of change messages
// between nodes.
import { expect } from 'chai'
import { defineResource, defineTool } from '../../core/index.ts'
import { sessionToolset } from '../fixtures/session-toolset.ts'
import { stopHostsAndRedis } from '../support/redis-host.ts'
import { nextMessage, readRest, type SessionClient } from '../support/session-client.ts'
import { needsStore, openAtAll, startCluster } from './support/nodes.ts'
import { SentMessages } from './support/sent-messages.ts'

const CAPABILITIES = { capabilities: { elicitation: { form: {}, url: {} } } }
const FORGED = 40
const long = 'x'.repeat(20_000)
const page = defineResource({ name: 'any', uriTemplate: 'doc://{+name}', handler: () => 'text' })
const asleep = defineTool({ name: 'asleep', handler: () => 'awake' })
const config = { toolsets: { all: [...sessionToolset, page, asleep] }, routes: { '/': { toolsets: 'all' } } } as const

type Sessions = readonly [SessionClient, ...SessionClient[]]

/** Asks at the first, answers the first question at the second as `answer` does, and the second question there plainly. */
async function ask([a, b]: Sessions, answer: (b: SessionClient, id: string) => Promise<unknown>) {
  const call = await a.call('ask_the_user')
  const { id } = await nextMessage(call)
  await answer(b as SessionClient, id)
  const { id: second } = await nextMessage(call)
  await b?.send({ id: second, result: { action: 'accept' } })
  return { ids: [id, second], content: (await readRest(call)).at(-1).result.structuredContent }
}

const accept = (name: string) => ({ action: 'accept', content: { name } })

describe('elicitation responses at another node', () => {
  before(function () {
    needsStore(this)
  })
  after(stopHostsAndRedis)

  it('are forwarded once for a pending request and never without one', async () => {
    const sent = new SentMessages()
    const cluster = await startCluster(2, config, undefined, sent)
    const [mine, theirs] = await Promise.all([openAtAll(cluster, 0, CAPABILITIES), openAtAll(cluster, 0, CAPABILITIES)])
    const { ids } = await ask(theirs, (b, id) => b.send({ id, result: accept('Eve') }))
    expect(sent.of('answer')).to.have.length(2)
    const node = /^ask-([0-9a-z]+)-/.exec(ids[0] as string)?.[1]
    const statuses = new Set<number | undefined>()
    for (let index = 1; index <= FORGED; index++) {
      // Of nobody, and of another session.
      const id = index % 4 === 0 ? ids[index % 8 ? 0 : 1] : `ask-${node}-aaaaaa-${index}`
      statuses.add((await mine[1]?.send({ id, result: { long } }))?.status)
    }
    const forgedPassed = sent.of('answer').length - 2
    let repeated = 0
    const { content } = await ask(mine, async (b, id) => {
      const replies = await Promise.all([1, 2, 3].map(() => b.send({ id, result: accept('Ada') })))
      repeated += replies.filter(({ status }) => status === 202).length
    })
    for (const id of ids) repeated += (await theirs[1]?.send({ id, result: accept('Eve') }))?.status === 202 ? 1 : 0
    const honestPassed = sent.of('answer').length - 2
    expect([forgedPassed, honestPassed, repeated]).to.deep.equal([0, 2, 5])
    expect([...statuses]).to.deep.equal([202])
    expect(content).to.deep.equal({ name: 'Ada', consent: 'accept' })
  })

  it('session change messages contain only the changed values', async () => {
    const sent = new SentMessages()
    const cluster = await startCluster(2, config, undefined, sent)
    const [a, b] = await openAtAll(cluster)
    await b?.request('tools/call', { name: 'asleep' })
    for (let index = 0; index < 10; index++) {
      await a.request('resources/subscribe', { uri: `doc://${index}-${'u'.repeat(8_000)}` })
    }
    const before = sent.of('changed').length
    for (let index = 0; index < 20; index++) {
      await a.request('logging/setLevel', { level: index % 2 ? 'info' : 'debug' })
    }
    const sizes = sent
      .of('changed')
      .slice(before)
      .map(({ length }) => length)
    expect(sizes).to.have.length(20)
    expect(Math.max(...sizes)).to.be.lessThan(500)
  })
})
