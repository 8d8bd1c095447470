// Tests `mcp-host start --workers 2` with metrics: each worker responds for both, and counters never decrease.
import { expect } from 'chai'
import { removeFolders } from '../config/folder.ts'
import { scrapeOf } from '../plugins/metrics/scrape.ts'
import { eventually } from '../support/eventually.ts'
import { callText } from '../support/steady-load.ts'
import { stopAll } from './run-cli.ts'
import { linesOf, startWorkers, workersConfig } from './start-workers.ts'

after(stopAll)
after(removeFolders)

const CALLS = 'mcp_server_operation_duration_seconds_count'

/** So many workers say where the metrics are. */
const serving = (count: number) => new RegExp(`(?:[^]*?"serving metrics"[^\\n]*\\n){${count}}`)

describe('mcp-host start --workers 2, with metrics', () => {
  it('responds on one port for both workers, and for one that was killed', async () => {
    const { running, url, workers } = await startWorkers(2, workersConfig({ plugins: 'metrics: { port: 0 }' }))
    const [text] = await running.logged(serving(2))
    const lines = linesOf(text).filter(({ msg }) => msg === 'serving metrics')
    const [address, other] = lines.map(line => String(line.url))
    expect(other).to.equal(address)
    // A connection of its own each time, so that either worker is asked.
    const scrape = () => scrapeOf(String(address), { Connection: 'close' })
    const calls = async () => {
      const found = (await scrape()).filter(
        ({ name, labels }) => name === CALLS && labels['gen_ai_tool_name'] === 'pid',
      )
      return found.reduce((sum, { value }) => sum + value, 0)
    }
    const pids = new Set(await Promise.all([...Array(20)].map(() => callText(url, 'pid'))))
    expect(pids.size).to.equal(2)
    await eventually('20 calls', async () => (await calls()) === 20)
    for (let round = 0; round < 4; round++) expect(await calls()).to.equal(20)
    const samples = await scrape()
    expect(samples.filter(({ name }) => name === 'process_start_time_seconds')).to.have.length(1)
    expect(samples.find(({ name }) => name === 'mcp_host_ready')?.value).to.equal(1)

    process.kill(Number(workers[0]), 'SIGKILL')
    await running.logged(serving(3))
    expect(await calls()).to.equal(20)
    await callText(url, 'pid')
    await eventually('21 calls', async () => (await calls()) === 21)
  })
})
