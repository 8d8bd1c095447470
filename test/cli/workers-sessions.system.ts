// Tests workers with sessions in Redis: any worker serves any session, also after a worker ended or the config was
// reloaded.
import { expect } from 'chai'
import { removeFolders } from '../config/folder.ts'
import { needsRedis, startRedis, stopRedis } from '../support/redis-server.ts'
import { openSession, type SessionClient } from '../support/session-client.ts'
import { configText, stopAll } from './run-cli.ts'
import { PID_TOOL, reload, startWorkers } from './start-workers.ts'

after(stopAll)
after(removeFolders)

/** Which processes answered 16 calls of a session; each call has a connection of its own. */
async function answeredBy(session: SessionClient): Promise<number[]> {
  const answers = await Promise.all([...Array(16)].map(() => session.request('tools/call', { name: 'pid' })))
  return [...new Set(answers.map(({ message }) => Number(message.result?.content[0].text)))].sort((a, b) => a - b)
}

describe('a session with two workers and cluster-redis', () => {
  before(function () {
    needsRedis(this)
  })
  after(stopRedis)

  it('is served by both, by the replacement of a killed worker, and after a reload', async () => {
    const { url: redis } = await startRedis()
    const http = "{ port: 0, keepAliveTimeout: '1s' }"
    const config = configText({ http, tool: PID_TOOL, plugins: `'cluster-redis': { url: '${redis}' }` })
    const crew = await startWorkers(2, config)
    const { running, url, workers } = crew
    const [victim = 0, other = 0] = workers
    const session = await openSession(`${url}/`)
    expect(await answeredBy(session)).to.deep.equal([...workers].sort((a, b) => a - b))
    process.kill(victim, 'SIGKILL')
    const [, successor] = await running.logged(/"worker":(\d+),"url":"[^"]+","serving":2,"msg":"a worker serves"/)
    expect(await answeredBy(session)).to.deep.equal([other, Number(successor)].sort((a, b) => a - b))
    await reload(crew, config)
    await running.logged(/"msg":"Reloaded"/)
    const last = await answeredBy(session)
    expect(last).to.have.length(2)
    expect(last).not.to.include.members([other])
    expect(last).not.to.include.members([Number(successor)])
    running.child.kill('SIGTERM')
    expect((await running.ended).code).to.equal(0)
  })
})
