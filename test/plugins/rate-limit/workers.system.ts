// Rate limits with `--workers`: the primary process counts for all workers, without Redis.
import { expect } from 'chai'
import { stopAll } from '../../cli/run-cli.ts'
import { PID_TOOL, reload, startWorkers, workersConfig } from '../../cli/start-workers.ts'
import { removeFolders } from '../../config/folder.ts'
import { modern } from '../../support/rpc.ts'
import { atOnce, statuses } from './limited-host.ts'

/** Identifies a caller by `X-User`. */
const WHO = `const who = definePlugin({
  provides: ['user'],
  setup: host => host.authenticate((ctx, next) => {
    const subject = ctx.get('x-user')
    if (subject) ctx.state.user = { subject, scopes: [], roles: [], claims: {} }
    return next()
  }),
})`

const config = (limits: string) =>
  workersConfig({ before: WHO, tool: PID_TOOL, plugins: `who: who(), 'rate-limit': ${limits}` })

/** A call on a connection of its own, which any worker can get. */
const call = (url: string, user: string) =>
  modern(`${url}/`, 'tools/call', { name: 'pid', arguments: {} }, { headers: { 'X-User': user, Connection: 'close' } })

describe('rate-limit: counts of two workers', () => {
  after(async () => {
    await stopAll()
    await removeFolders()
  })

  it('enforce exact limits for users and tools, and keep counts across a reload', async () => {
    const crew = await startWorkers(2, config("{ user: '60/1h', tools: { pid: '40/1h' } }"))
    const answers = await atOnce(50, () => call(crew.url, 'ann'))
    expect(statuses(answers)).to.deep.equal({ 200: 40, 429: 10 })
    const pids = new Set(answers.flatMap(({ message }) => message.result?.content[0].text ?? []))
    expect([...pids].map(Number).toSorted()).to.deep.equal(crew.workers.toSorted())
    expect(statuses(await atOnce(20, () => call(crew.url, 'bob')))).to.deep.equal({ 200: 20 })

    await reload(crew, config("{ user: '60/1h' }"))
    await crew.running.logged(/"msg":"Reloaded"/)
    expect(statuses(await atOnce(15, () => call(crew.url, 'ann')))).to.deep.equal({ 200: 10, 429: 5 })
  })
})
