// `npm run chaos`: nodes and Redis fail under load, one kind of failure after the other. Nothing can be lost or
// duplicated. Options: --seconds 120 (of each kind), --kinds kill,roll,pause,restart,forget,cut, --seed 7.
import { parseArgs } from 'node:util'
import { errorText } from '../../../core/http/errors.ts'
import { inPath } from '../../support/needs-program.ts'
import { describeReport, runChaos } from './chaos.ts'
import { DESCRIPTIONS, KINDS, type Kind } from './failure-kinds.ts'

function readOptions() {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '120' },
      kinds: { type: 'string', default: KINDS.join(',') },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1e9)) },
    },
  })
  const [seconds, seed] = [Number(values.seconds), Number(values.seed)]
  if (!(seconds > 0)) throw new Error('--seconds takes a number greater than 0')
  if (!Number.isInteger(seed)) throw new Error('--seed takes a whole number')
  const kinds = values.kinds.split(',').map(name => {
    const kind = KINDS.find(known => known === name)
    if (kind === undefined) throw new Error(`--kinds: there is no "${name}"; there are ${KINDS.join(', ')}`)
    return kind
  })
  return { seconds, seed, kinds }
}

async function runKind(kind: Kind, seconds: number, seed: number): Promise<boolean> {
  console.log(`${kind}, ${seconds} s: ${DESCRIPTIONS[kind]}; seed ${seed}`)
  const report = await runChaos({ kinds: [kind], seconds, failures: 1, seed })
  console.log(`      ${describeReport(report)}`)
  if (report.faults.length > 0) console.log(report.output)
  return report.faults.length === 0
}

// A signal must run the `exit` listeners too, which end the processes of the deployment.
process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))
try {
  for (const program of ['redis-server', 'nginx']) {
    if (!inPath(program)) throw new Error(`${program} is not in PATH: apt-get install ${program}`)
  }
  const { seconds, seed, kinds } = readOptions()
  let passed = 0
  for (const kind of kinds) if (await runKind(kind, seconds, seed)) passed++
  console.log(`${passed} of ${kinds.length} kinds passed`)
  process.exit(passed === kinds.length ? 0 : 1)
} catch (thrown) {
  console.error(`chaos could not run: ${errorText(thrown)}`)
  process.exit(1)
}
