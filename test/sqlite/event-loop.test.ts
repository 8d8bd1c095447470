// What synchronous commits leave of the event loop: they are a thread's, and while they are made the loop turns. What is
// asserted is a count: the loop turned between the commits. The delays are printed, for people to judge.
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'
import { expect } from 'chai'
import { closeFiles, newFile, openFile } from '../plugins/store-sqlite/support/sqlite-files.ts'
import { HAS_SQLITE } from './support/sqlite.ts'

/** Milliseconds, of the loop that has nothing to do: what the machine and its other users make of it. */
const IDLE = 1_000
const STREAMS = 32
const EVENTS = 60

const figuresOf = (delay: IntervalHistogram) => {
  const [p50, p99, max] = [delay.percentile(50), delay.percentile(99), delay.max].map(one => (one / 1e6).toFixed(1))
  return `p50 ${p50} ms, p99 ${p99} ms, max ${max} ms`
}

/** The delay of the loop while it turns, and does what `act` does. */
async function measure(act: () => Promise<unknown>) {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  let turns = 0
  let over = false
  const turn = () => {
    turns++
    if (!over) setImmediate(turn)
  }
  delay.enable()
  turn()
  const began = performance.now()
  await act()
  over = true
  delay.disable()
  return { turns, seconds: (performance.now() - began) / 1_000, figures: figuresOf(delay) }
}

if (HAS_SQLITE) {
  describe('the event loop of a host on a file', function () {
    this.timeout(60_000)
    after(closeFiles)

    it(`turns while ${STREAMS * EVENTS} events are each committed with a sync`, async () => {
      const { events, committed } = await openFile(newFile())
      const write = async (stream: string) => {
        for (let seq = 1; seq <= EVENTS; seq++) {
          await events.append('session', stream, `event ${seq} ${'x'.repeat(500)}`, seq - 1, { epoch: 1, facts: '{}' })
        }
      }
      const idle = await measure(() => wait(IDLE))
      const found = await measure(() =>
        Promise.all(Array.from({ length: STREAMS }, (_, index) => write(`stream ${index}`))),
      )
      const durable = committed.filter(one => one.durable).length
      const rate = ((STREAMS * EVENTS) / found.seconds).toFixed(0)
      console.log(
        `      ${durable} commits, ${rate} events/s, ${found.turns} turns of the loop in ${found.seconds.toFixed(1)} s`,
      )
      console.log(`      delay of the loop: ${found.figures}; of one that has nothing to do: ${idle.figures}`)
      expect(durable).to.be.within(EVENTS, STREAMS * EVENTS)
      // A loop that waited for the disk would turn about once for each commit.
      expect(found.turns).to.be.greaterThan(20 * durable)
    })
  })
}
