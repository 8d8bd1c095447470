// Tests `mcp-host login` at one server in several processes: one prints the URL, the others wait and take over.
import { expect } from 'chai'
import { authorize } from '../client/support/fake-servers.ts'
import { filesOf, startDesk, stopDesks } from './login-setup.ts'
import { startCli, stopAll } from './run-cli.ts'

const URL_LINE = /^ {2}(http:\S+\/authorize\?\S+)$/m

describe('mcp-host login in several processes', () => {
  after(async () => {
    await stopAll()
    await stopDesks()
  })

  it('shows the URL and the process to wait for, and takes over when that process is killed', async () => {
    const desk = await startDesk()
    // A browser that opens nothing.
    const start = () => startCli(['login', desk.url], desk.home, { ...desk.env, BROWSER: '/bin/true' })
    const owner = start()
    await owner.logged(URL_LINE)
    const waiter = start()
    const [, pid] = await waiter.logged(/process (\d+)/)
    expect(Number(pid)).to.equal(owner.child.pid)
    owner.child.kill('SIGKILL')
    const [, url = ''] = await waiter.logged(URL_LINE)
    await (await fetch(await authorize(url))).body?.cancel()
    const { code, stderr } = await waiter.ended
    expect(code, stderr).to.equal(0)
    expect((await filesOf(desk)).filter(name => name.includes('.lock'))).to.deep.equal([])
  })

  it('uses the tokens of the process that completed its login', async () => {
    const desk = await startDesk()
    const start = () => startCli(['login', desk.url], desk.home, { ...desk.env, BROWSER: '/bin/true' })
    const owner = start()
    const [, url = ''] = await owner.logged(URL_LINE)
    const waiters = [start(), start()]
    for (const waiter of waiters) await waiter.logged(/process \d+/)
    await (await fetch(await authorize(url))).body?.cancel()
    for (const { ended } of [owner, ...waiters]) expect((await ended).code).to.equal(0)
    expect(desk.fake.as.count('/token')).to.equal(1)
  })
})
