// Tests SIGHUP: new workers read the config and replace the old ones one by one without failed requests.
import { expect } from 'chai'
import { removeFolders } from '../config/folder.ts'
import { isAlive } from '../support/is-alive.ts'
import { callText, startLoad, stopLoads } from '../support/steady-load.ts'
import { stopAll } from './run-cli.ts'
import { type Crew, linesOf, reload, startWorkers, version } from './start-workers.ts'

after(stopLoads)
after(stopAll)
after(removeFolders)

describe('SIGHUP to mcp-host start --workers 2', () => {
  let crew: Crew
  before(async () => {
    crew = await startWorkers(2, version('old'))
  })

  it('with an invalid config logs the reason once, and the old workers continue', async () => {
    const { running, url, workers } = crew
    const load = startLoad(url, 'version')
    await reload(crew, version('new').replace('port:', 'prot:'))
    const [line] = await running.logged(/^.*"msg":"Reload failed.*$/m)
    await load.answers(50)
    const { failures, texts } = await load.stop()
    expect([failures, [...texts.keys()]]).to.deep.equal([[], ['old']])
    const { problem, replaced, exitCode } = JSON.parse(line)
    expect(problem).to.match(/http\.prot\n {2}MH1011 unknown option; did you mean "port"\?/)
    expect([replaced, exitCode]).to.deep.equal([0, 2])
    expect(workers.filter(isAlive)).to.deep.equal(workers)
  })

  it('replaces every worker without a failed request, on open and new connections', async () => {
    const { running, url, workers } = crew
    const load = startLoad(url, 'version')
    await load.answers(100)
    await reload(crew, version('new'))
    await running.logged(/"msg":"Reloaded"/)
    await load.answers(100)
    const { failures, texts } = await load.stop()
    expect(failures).to.deep.equal([])
    expect([...texts.keys()]).to.deep.equal(['old', 'new'])
    const after = await Promise.all([...Array(20)].map(() => callText(url, 'version')))
    expect(new Set(after)).to.deep.equal(new Set(['new']))
    expect(workers.filter(isAlive)).to.deep.equal([])
    running.child.kill('SIGTERM')
    const { code, stderr } = await running.ended
    const [begun, failed, ...lines] = linesOf(stderr).map(({ level, msg }) => [level, msg])
    expect([begun?.[0], failed?.[0]]).to.deep.equal([30, 50])
    expect(lines).to.deep.equal([
      [30, 'reloading: new workers read the config'],
      [30, 'replaced a worker'],
      [30, 'replaced a worker'],
      [30, 'Reloaded'],
    ])
    expect(code).to.equal(0)
  })
})
