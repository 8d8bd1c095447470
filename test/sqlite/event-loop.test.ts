// Synchronous SQLite commits run in a worker thread and do not block the event loop.
import { expect } from 'chai'
import { closeFiles, newFile, openFile } from '../plugins/store-sqlite/support/sqlite-files.ts'
import { repeatDuring } from '../support/repeat-during.ts'
import { HAS_SQLITE } from './support/sqlite.ts'

const STREAMS = 32
const EVENTS = 60

if (HAS_SQLITE) {
  describe('event loop with store-sqlite', () => {
    after(closeFiles)

    it(`runs while ${STREAMS * EVENTS} events are committed with fsync`, async () => {
      const { events, committed } = await openFile(newFile())
      const write = async (stream: string) => {
        for (let seq = 1; seq <= EVENTS; seq++) {
          await events.append('session', stream, `event ${seq} ${'x'.repeat(500)}`, seq - 1, { epoch: 1, facts: '{}' })
        }
      }
      let turns = 0
      const writeAll = () => Promise.all(Array.from({ length: STREAMS }, (_, index) => write(`stream ${index}`)))
      await repeatDuring(async () => turns++, writeAll)
      const durable = committed.filter(one => one.durable).length
      expect(durable).to.be.within(EVENTS, STREAMS * EVENTS)
      // A loop that waited for the disk would turn about once for each commit.
      expect(turns).to.be.greaterThan(20 * durable)
    })
  })
}
