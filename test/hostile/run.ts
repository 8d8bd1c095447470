// `npm run hostile`: attacks a host with hostile clients. It must not crash, leak or block. Options: --seconds 60,
// --seed 7, --only kind,kind, --replay kind:number,..., --list.
import { parseArgs } from 'node:util'
import { runHostile } from './hostile.ts'
import { describeKinds, describeReport, verdictsOf } from './report.ts'

const listOf = (text: string | undefined) => text?.split(',').filter(word => word !== '')

function readOptions() {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1e9)) },
      only: { type: 'string' },
      replay: { type: 'string' },
      list: { type: 'boolean', default: false },
      'host-flags': { type: 'string' },
    },
  })
  const [seconds, seed] = [Number(values.seconds), Number(values.seed)]
  if (!(seconds > 0)) throw new Error('--seconds takes a number greater than 0')
  if (!Number.isInteger(seed)) throw new Error('--seed takes a whole number')
  return {
    seconds,
    seed,
    only: listOf(values.only),
    replay: listOf(values.replay),
    list: values.list,
    hostFlags: listOf(values['host-flags']) ?? [],
  }
}

// A signal must run the `exit` listeners too, which end the host.
process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))
try {
  const { list, ...settings } = readOptions()
  if (list) {
    console.log(describeKinds())
    process.exit(0)
  }
  console.log(`seed ${settings.seed}, ${settings.seconds} s`)
  const report = await runHostile(settings)
  console.log(describeReport(report, settings.seed))
  const failed = verdictsOf(report).filter(({ holds }) => !holds).length
  console.log(
    failed === 0 ? '\nall verdicts hold' : `\n${failed} verdicts do not hold; again with --seed ${settings.seed}`,
  )
  process.exit(failed === 0 ? 0 : 1)
} catch (thrown) {
  console.error(`hostile could not run: ${thrown instanceof Error ? thrown.message : thrown}`)
  process.exit(1)
}
