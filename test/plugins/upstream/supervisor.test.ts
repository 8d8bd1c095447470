// Tests how a connection is kept open.
import { expect } from 'chai'
import { createSupervisor } from '../../../plugins/upstream/supervisor.ts'
import { type Connection, RemoteError } from '../../../remote/index.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const lost = () => new RemoteError('lost', 'it ended')

function start({ onDemand = false } = {}) {
  const clock = createManualClock()
  const attempts: number[] = []
  const begun = clock.monotonic()
  let works = true
  let closed: (error: RemoteError) => void = () => undefined
  let closings = 0
  const connection = { close: async () => void closings++ } as Connection
  const supervisor = createSupervisor({
    clock,
    onDemand,
    async open(whenClosed) {
      attempts.push(clock.monotonic() - begun)
      closed = whenClosed
      if (!works) throw lost()
      return connection
    },
  })
  return {
    clock,
    attempts,
    supervisor,
    connection,
    setWorks(value: boolean) {
      works = value
    },
    end: () => closed(lost()),
    closings: () => closings,
  }
}

const messageOf = (work: Promise<unknown>) => work.then(String, (error: Error) => error.message)

describe('A supervisor', () => {
  it('connects once for all callers', async () => {
    const { supervisor, attempts, connection } = start()
    expect(await Promise.all([supervisor.get(), supervisor.get()])).to.deep.equal([connection, connection])
    expect(await supervisor.get()).to.equal(connection)
    expect(attempts).to.have.length(1)
    expect(supervisor.state.status).to.equal('up')
  })

  it('connects again after the connection has ended, and rejects until then', async () => {
    const { supervisor, attempts, clock, end } = start()
    await supervisor.get()
    end()
    expect(supervisor.state.status).to.equal('down')
    expect(await messageOf(supervisor.get())).to.equal('it ended')
    await clock.advance(1_000)
    expect(attempts).to.have.length(2)
    expect(supervisor.state.status).to.equal('up')
  })

  it('enters a crash loop after five failures, and tries every five minutes', async () => {
    const { supervisor, attempts, clock, setWorks } = start()
    setWorks(false)
    await messageOf(supervisor.get())
    await clock.advance(60_000)
    expect(attempts).to.have.length(5)
    expect(supervisor.state.status).to.equal('crash loop')
    const begun = attempts.at(-1) ?? 0
    await clock.advance(300_000)
    expect(attempts).to.have.length(6)
    expect((attempts.at(-1) ?? 0) - begun).to.be.closeTo(300_000, 10)
    await clock.advance(900_000)
    expect(attempts).to.have.length(9)
    expect(supervisor.state.status).to.equal('crash loop')
  })

  it('stays in a crash loop when a connection ends soon', async () => {
    const { supervisor, attempts, clock, setWorks, end } = start()
    setWorks(false)
    await messageOf(supervisor.get())
    await clock.advance(60_000)
    setWorks(true)
    for (let count = 1; count <= 3; count++) {
      await clock.advance(300_000)
      expect(supervisor.state.status).to.equal('up')
      end()
      expect(supervisor.state.status).to.equal('crash loop')
      expect(attempts).to.have.length(5 + count)
    }
  })

  it('tries for callers of a server at a URL, at most once a second, without a crash loop', async () => {
    const { supervisor, attempts, clock, setWorks } = start({ onDemand: true })
    setWorks(false)
    for (let second = 0; second < 20; second++) {
      await Promise.all([messageOf(supervisor.get()), messageOf(supervisor.get())])
      await messageOf(supervisor.get())
      await clock.advance(1_000)
    }
    expect(attempts.length).to.be.within(20, 40)
    expect(supervisor.state.status).to.equal('down')
  })

  it('retries at once on request, and leaves the crash loop', async () => {
    const { supervisor, attempts, clock, setWorks } = start()
    setWorks(false)
    await messageOf(supervisor.get())
    await clock.advance(60_000)
    expect(supervisor.state.status).to.equal('crash loop')
    supervisor.retry()
    await clock.advance(0)
    expect(attempts).to.have.length(6)
    expect(supervisor.state.status).to.equal('down')
    setWorks(true)
    supervisor.retry()
    await clock.advance(0)
    expect(supervisor.state.status).to.equal('up')
    supervisor.retry()
    expect(attempts).to.have.length(7)
  })

  it('schedules attempts in whole milliseconds', async () => {
    const { supervisor, clock, setWorks } = start()
    setWorks(false)
    await messageOf(supervisor.get())
    for (let count = 0; count < 3; count++) {
      expect(supervisor.state).to.have.property('nextAttempt').that.satisfies(Number.isInteger)
      await clock.advance(clock.pending()[0] ?? 0)
    }
  })

  it('closes its connection and makes no other', async () => {
    const { supervisor, attempts, clock, closings } = start()
    await supervisor.get()
    await supervisor.close()
    expect(closings()).to.equal(1)
    expect(await messageOf(supervisor.get())).to.equal('the connection is closed')
    await clock.advance(600_000)
    expect(attempts).to.have.length(1)
  })
})
