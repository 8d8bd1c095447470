// A process that creates tasks in a file, runs every other one, and says of each that it was kept, and of each that has ended. For
// tasks.test.ts.
import { openFile } from './sqlite-files.ts'

const [, , file = '', name = '', hostId = ''] = process.argv
const MINUTE = 60_000
const BOUNDS = { openPerHolder: 100_000, keptPerHolder: 100_000, kept: 100_000 }

try {
  const { tasks } = await openFile(file, { hostId })
  const create = async (lane: number) => {
    for (let number = 0; process.connected; number++) {
      const id = `${name}-${lane}-${number}`
      const queue = number % 2 === 0 ? 'run' : 'rest'
      await tasks.create({ id, holder: name, owner: name, queue, ttl: 10 * MINUTE, body: id }, BOUNDS)
      process.send?.({ created: id })
    }
  }
  const work = async () => {
    while (process.connected) {
      const task = await tasks.claim([{ queue: 'run', running: 100, runningPerHolder: 100 }], MINUTE)
      if (!task) continue
      process.send?.({ claimed: task.id })
      if (await tasks.end(task, { state: 'completed', outcome: task.body }, 10 * MINUTE))
        process.send?.({ ended: task.id })
    }
  }
  await Promise.all([create(0), create(1), create(2), work(), work()])
} catch (error) {
  process.send?.({ failed: (error as Error).message })
  process.disconnect()
}
