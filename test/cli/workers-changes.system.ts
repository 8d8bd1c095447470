// Tests change notifications between workers through the primary, without Redis.
import { expect } from 'chai'
import { removeFolders } from '../config/folder.ts'
import { modern } from '../support/rpc.ts'
import { listen, nextMessage } from '../support/session-client.ts'
import { CORE, configText, stopAll } from './run-cli.ts'
import { startWorkers } from './start-workers.ts'

after(stopAll)
after(removeFolders)

const LISTENERS = 6
const CHANGES = 30
const uri = 'note://one'

const CONFIG = configText({
  http: "{ port: 0, keepAliveTimeout: '1s' }",
  before: `import { defineResource } from '${CORE}'`,
  tool: `defineResource({ name: 'one', uri: '${uri}', handler: () => 'one' }), defineTool({ name: 'touch', handler: (_, { host }) => { host.resourceUpdated('${uri}'); return String(process.pid) } })`,
  routes: "{ '/': { toolsets: ['first', 'second'], stateless: true, listen: true } }",
})

/** Has a worker say that the resource has changed, over a connection of its own; gives its process id. */
async function touch(url: string): Promise<number> {
  const { message } = await modern(url, 'tools/call', { name: 'touch' })
  return Number(message.result?.content[0].text)
}

describe('two workers without Redis', () => {
  it('notify clients of either worker about changes at the other, also after a worker was replaced', async () => {
    const { running, url, workers } = await startWorkers(2, CONFIG)
    const streams = await Promise.all(
      Array.from({ length: LISTENERS }, () => listen(`${url}/`, { resourceSubscriptions: [uri] })),
    )
    for (const stream of streams) {
      expect(await nextMessage(stream)).to.have.nested.property('params.notifications.resourceSubscriptions')
    }
    const changedBy = new Set<number>()
    for (let count = 0; count < CHANGES; count++) changedBy.add(await touch(`${url}/`))
    expect([...changedBy].sort()).to.deep.equal([...workers].sort())
    for (const stream of streams) {
      for (let count = 0; count < CHANGES; count++) {
        expect(await nextMessage(stream)).to.have.property('method', 'notifications/resources/updated')
      }
    }
    process.kill(workers[0] as number, 'SIGKILL')
    await running.logged(/"serving":2,"msg":"a worker serves"/)
    const later = await Promise.all(
      Array.from({ length: LISTENERS }, () => listen(`${url}/`, { resourceSubscriptions: [uri] })),
    )
    for (const stream of later) await nextMessage(stream)
    const changedLater = new Set<number>()
    for (let count = 0; count < CHANGES; count++) changedLater.add(await touch(`${url}/`))
    expect(changedLater.size).to.equal(2)
    for (const stream of later) {
      for (let count = 0; count < CHANGES; count++) {
        expect(await nextMessage(stream)).to.have.property('method', 'notifications/resources/updated')
      }
    }
    for (const stream of [...streams, ...later]) stream.drop()
    running.child.kill('SIGTERM')
    expect((await running.ended).code).to.equal(0)
  })
})
