// Tests a rolling restart of three nodes behind nginx (examples/scaling) under load.
import { expect } from 'chai'
import { type Balanced, needsDeployment, startBalanced, stopBalanced } from '../cluster/support/balanced-deployment.ts'
import { eventually } from '../support/eventually.ts'
import { openSession } from '../support/session-client.ts'
import { startLoad, stopLoads } from '../support/steady-load.ts'

after(stopLoads)
after(stopBalanced)

describe('rolling restart behind nginx', function () {
  this.timeout(600_000)

  let balanced: Balanced
  before(async function () {
    needsDeployment(this)
    balanced = await startBalanced({ config: 'examples/scaling/mcp.config.ts' })
  })

  it('rejects and loses no request', async () => {
    const url = `${balanced.url}/mcp`
    const session = await openSession(url)
    const loads = [{}, { session: session.id }].map(kind => startLoad(url, 'current_time', { ...kind, each: 1 }))
    const given = (place: number) => [...balanced.nginx.counts().values()][place] ?? 0
    for (const place of balanced.nodes.keys()) {
      await Promise.all(loads.map(load => load.answers(50)))
      expect(await balanced.nodes[place]?.stop()).to.equal(true)
      await balanced.restart(place)
      // A node that nginx found away stays out for its fail_timeout, a second or two; one that starts is back before that.
      const before = given(place)
      await eventually(`nginx gives node ${place + 1} requests again`, () => given(place) > before)
    }
    const reports = await Promise.all(loads.map(load => load.stop()))
    expect(reports.flatMap(({ failures }) => failures)).to.deep.equal([])
  })
})
