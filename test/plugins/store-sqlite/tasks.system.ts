// Tasks in the SQLite file beyond the task store contract: kills, limits, migrations and missed changes.

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { expect } from 'chai'
import { HostError } from '../../../core/index.ts'
import type { NewTask, TaskLimits } from '../../../plugins/families/task-store/index.ts'
import { rejectionOf } from '../../fixtures/rejection-of.ts'
import { bundledFile } from '../../support/compiled.ts'
import { eventually } from '../../support/eventually.ts'
import { closeFiles, hasSqlite, newFile, openFile } from './support/sqlite-files.ts'

const PROGRAM = bundledFile('test/plugins/store-sqlite/support/tasking-process.ts')
const MINUTE = 60_000
const MIB = 1_048_576
const WIDE: TaskLimits = { openPerHolder: 100_000, keptPerHolder: 100_000, kept: 100_000 }
const OFFER = { queue: 'run', running: 1_000, runningPerHolder: 1_000 }
const children = new Set<ChildProcess>()

const newTask = (id: string, more: Partial<NewTask> = {}): NewTask => ({
  ...{ id, holder: 'ann', owner: 'ann', queue: 'run', ttl: 10 * MINUTE, body: id },
  ...more,
})

/** What a process told before it was killed. */
function startTasking(file: string, name: string, hostId: string) {
  const child = fork(PROGRAM, [file, name, hostId], { execArgv: [] })
  children.add(child)
  const told = { created: [] as string[], claimed: [] as string[], ended: [] as string[], failed: [] as string[] }
  child.on('message', (message: Readonly<Partial<Record<keyof typeof told, string>>>) => {
    for (const [what, id] of Object.entries(message)) told[what as keyof typeof told].push(id ?? '')
  })
  return {
    told,
    async kill() {
      const ended = once(child, 'close')
      child.kill('SIGKILL')
      await ended
      children.delete(child)
    },
  }
}

if (hasSqlite) {
  describe('store-sqlite: tasks', () => {
    after(async () => {
      for (const child of children) child.kill('SIGKILL')
      await closeFiles()
    })

    it('keeps acknowledged tasks and outcomes when the process is killed', async () => {
      const file = newFile()
      const both = ['one', 'other'].map(name => startTasking(file, name, 'one host'))
      for (const { told } of both) {
        await eventually(
          'some created and ended',
          () => (told.failed.length > 0 ? told.failed : told.ended.length),
          ended => typeof ended === 'number' && ended >= 30,
        )
      }
      await Promise.all(both.map(({ kill }) => kill()))
      const { tasks } = await openFile(file, { hostId: 'another' })
      const claimed = both.flatMap(({ told }) => told.claimed)
      expect(claimed.length).to.equal(new Set(claimed).size)
      for (const { told } of both) {
        expect(told.created.length).to.be.above(30)
        for (const id of told.created) expect((await tasks.get(id))?.id).to.equal(id)
        for (const id of told.ended) expect((await tasks.get(id))?.state).to.equal('completed')
      }
    })

    it('refuses tasks beyond the task limit, while existing tasks continue and free space', async () => {
      const { tasks } = await openFile(newFile(), { bounds: { maxSize: 4 * MIB } })
      let kept = 0
      for (let outcome: string = 'created'; outcome === 'created' && kept < 2_000; ) {
        outcome = await tasks.create(newTask(`t${kept}`, { holder: `h${kept % 10}`, body: 'x'.repeat(10_000) }), WIDE)
        if (outcome === 'created') kept++
        else expect(outcome).to.equal('full')
      }
      expect(kept).to.be.within(60, 80)
      const run = await tasks.claim([OFFER], MINUTE)
      const lease = { id: run?.id ?? '', fence: run?.fence ?? 0 }
      expect(await tasks.note(lease, 'half')).to.equal(true)
      const end = (size: number) => tasks.end(lease, { state: 'completed', outcome: 'y'.repeat(size) }, 1)
      expect(await end(25_000), 'an outcome that is larger than what was to do').to.equal('full')
      expect(await end(10_000)).to.equal(true)
      expect(
        await tasks.create(newTask('more', { holder: 'eve', body: 'x'.repeat(10_000) }), WIDE),
        'what is over is kept, too',
      ).to.equal('full')
      const short = await openFile(newFile(), { bounds: { maxSize: 4 * MIB } })
      for (let index = 0; index < 70; index++)
        await short.tasks.create(
          newTask(`s${index}`, { holder: `h${index % 10}`, body: 'x'.repeat(10_000), ttl: 300 }),
          WIDE,
        )
      const outcome = await eventually(
        'room again',
        () => short.tasks.create(newTask('next', { body: 'x'.repeat(10_000) }), WIDE),
        found => found === 'created',
      )
      expect(outcome).to.equal('created')
    })

    it('refuses tasks with 503 on a full disk, and leaves no partial data', async () => {
      const { tasks, grants } = await openFile(newFile(), { bounds: { maxSize: MIB } })
      await tasks.create(newTask('first'), WIDE)
      const run = await tasks.claim([OFFER], MINUTE)
      const lease = { id: 'first', fence: run?.fence ?? 0 }
      let error: unknown
      const fill = async (size: number) => {
        error = undefined
        for (let index = 0; index < 2_000 && !error; index++) {
          await grants.set(`granted:${size}-${index}`, 'x'.repeat(size), MINUTE).catch(thrown => {
            error = thrown
          })
        }
      }
      // To the last page.
      for (const size of [50_000, 3_000, 100]) await fill(size)
      expect(HostError.is(error) && error.kind, String(error)).to.equal('unavailable')
      const refused = await rejectionOf(
        tasks.create(newTask('second', { holder: 'bob', body: 'x'.repeat(45_000) }), WIDE),
      )
      expect(HostError.is(refused) && refused.kind, String(refused)).to.equal('unavailable')
      expect((await tasks.list('ann', 10)).map(({ id, state }) => [id, state])).to.deep.equal([['first', 'running']])
      expect(await tasks.get('second')).to.equal(undefined)
      expect(await tasks.renew([lease], MINUTE), 'a lease takes no room').to.deep.equal([2])
      await grants.delete(...Array.from({ length: 20 }, (_, index) => `granted:50000-${index}`))
      const ended = await eventually(
        'room again',
        () => tasks.end(lease, { state: 'completed', outcome: 'x'.repeat(45_000) }, MINUTE).catch(() => undefined),
        done => done === true,
      )
      expect(ended).to.equal(true)
    })

    it('refuses every operation with 503 after the file is closed', async () => {
      const { tasks, writer } = await openFile(newFile())
      await writer.close()
      for (const act of [
        () => tasks.create(newTask('one'), WIDE),
        () => tasks.get('one'),
        () => tasks.claim([OFFER], MINUTE),
        () => tasks.cancel('one'),
        () => tasks.depths(),
      ]) {
        const error = await rejectionOf(act())
        expect(HostError.is(error) && error.kind, String(error)).to.equal('unavailable')
      }
    })
  })
}
