// What synchronous commits leave of the event loop: they are a thread's, and while they are made the loop turns. What is
// asserted is a count: the loop turned between the commits. The delays are printed, for people to judge.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { expect } from 'chai'
import { closeFiles, newFile, openFile } from '../plugins/store-sqlite/support/sqlite-files.ts'
import { HAS_SQLITE } from './support/sqlite.ts'

const STREAMS = 32
const EVENTS = 60

if (HAS_SQLITE) {
  describe('the event loop of a host on a file', function () {
    this.timeout(60_000)
    after(closeFiles)

    it(`turns while ${STREAMS * EVENTS} events are each committed with a sync`, async () => {
      const { events, committed } = await openFile(newFile())
      const delay = monitorEventLoopDelay({ resolution: 1 })
      let turns = 0
      let over = false
      const turn = () => {
        turns++
        if (!over) setImmediate(turn)
      }
      const write = async (stream: string) => {
        for (let seq = 1; seq <= EVENTS; seq++) {
          await events.append('session', stream, `event ${seq} ${'x'.repeat(500)}`, seq - 1, { epoch: 1, facts: '{}' })
        }
      }
      delay.enable()
      turn()
      const began = performance.now()
      await Promise.all(Array.from({ length: STREAMS }, (_, index) => write(`stream ${index}`)))
      const seconds = (performance.now() - began) / 1_000
      over = true
      delay.disable()
      const durable = committed.filter(one => one.durable).length
      const [p50, p99, max] = [delay.percentile(50), delay.percentile(99), delay.max].map(one => (one / 1e6).toFixed(1))
      const rate = (STREAMS * EVENTS) / seconds
      console.log(
        `      ${durable} commits, ${rate.toFixed(0)} events/s, ${turns} turns of the loop in ${seconds.toFixed(1)} s`,
      )
      console.log(`      delay of the loop, resolution 1 ms: p50 ${p50} ms, p99 ${p99} ms, max ${max} ms`)
      expect(durable).to.be.within(EVENTS, STREAMS * EVENTS)
      // A loop that waited for the disk would turn about once for each commit.
      expect(turns).to.be.greaterThan(20 * durable)
    })
  })
}
