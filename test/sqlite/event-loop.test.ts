// Tests that synchronous SQLite commits do not block the event loop.
import { expect } from 'chai'
import { closeFiles, newFile, openFile } from '../plugins/store-sqlite/support/sqlite-files.ts'
import { HAS_SQLITE } from './support/sqlite.ts'

const STREAMS = 32
const EVENTS = 60

/** Turns of the event loop while `act` runs. */
async function countTurns(act: () => Promise<unknown>) {
  let turns = 0
  let over = false
  const turn = () => {
    turns++
    if (!over) setImmediate(turn)
  }
  turn()
  await act()
  over = true
  return turns
}

if (HAS_SQLITE) {
  describe('event loop with store-sqlite', function () {
    this.timeout(60_000)
    after(closeFiles)

    it(`runs while ${STREAMS * EVENTS} events are committed with fsync`, async () => {
      const { events, committed } = await openFile(newFile())
      const write = async (stream: string) => {
        for (let seq = 1; seq <= EVENTS; seq++) {
          await events.append('session', stream, `event ${seq} ${'x'.repeat(500)}`, seq - 1, { epoch: 1, facts: '{}' })
        }
      }
      const turns = await countTurns(() =>
        Promise.all(Array.from({ length: STREAMS }, (_, index) => write(`stream ${index}`))),
      )
      const durable = committed.filter(one => one.durable).length
      expect(durable).to.be.within(EVENTS, STREAMS * EVENTS)
      // A loop that waited for the disk would turn about once for each commit.
      expect(turns).to.be.greaterThan(20 * durable)
    })
  })
}
