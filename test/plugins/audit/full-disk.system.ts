// Audit startup on a full disk, on a real small disk where this process can mount one.
import { appendFile, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { StartError } from '../../../core/plugin.ts'
import { Trail } from '../../../plugins/audit/trail.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { eventually } from '../../support/eventually.ts'
import { mountSmall, unmount } from '../../support/small-disk.ts'
import { stopHosts } from '../../support/start-host.ts'
import { auditsIn, linesIn, SECRET, signersOf, startAudited, verdictOn } from './audited-host.ts'

after(removeFolders)
afterEach(stopHosts)

const ignore = () => undefined
const quiet = { debug: ignore, info: ignore, warn: ignore, error: ignore, child: () => quiet }

const ENDLESS = {
  node: 'n',
  sync: 'never',
  headEvery: 60_000,
  rotateAt: Infinity,
  rotateAfter: Infinity,
  keep: Infinity,
} as const

/** Leaves no room. */
const fill = (disk: string) => writeFile(join(disk, 'filler'), 'x'.repeat(64 * 1024)).catch(() => undefined)

describe('audit: startup on a full disk', () => {
  for (const onFailure of ['refuse', 'warn'] as const) {
    it(`starts on a full disk with onFailure ${onFailure} and writes once there is space`, async function () {
      const folder = await makeFolder({})
      const disk = join(folder, 'disk')
      await mkdir(disk)
      mountSmall(this, disk)
      try {
        await fill(disk)
        const options = { file: 'disk/audit.jsonl', onFailure }
        const config = { plugins: { health: {} } }
        const { call, close, log, url } = await startAudited({ folder, options, config })
        const told = log.filter(({ message }) => message === 'the audit cannot be written')
        expect(told.map(({ problem }) => String(problem).slice(0, 6))).to.deep.equal(['ENOSPC'])
        expect((await call('say')).status).to.equal(onFailure === 'refuse' ? 503 : 200)
        expect((await fetch(`${url}/health`)).status).to.equal(onFailure === 'refuse' ? 503 : 200)
        // No draft of a lock, nor half a line that nobody heals.
        expect((await readdir(disk)).filter(name => /lock\../.test(name))).to.deep.equal([])
        await rm(join(disk, 'filler'))
        await eventually('written', () => log.find(({ message }) => message === 'the audit is written again'))
        expect((await call('say')).status).to.equal(200)
        await close()
        expect(await verdictOn(disk)).to.equal('whole, 1')
        const lines = await linesIn(join(disk, 'audit.jsonl'))
        expect(lines[0]).to.include({ event: 'opened', why: 'start' })
        expect(lines.filter(({ name }) => name === 'say')).to.have.length(onFailure === 'refuse' ? 1 : 2)
        expect(lines.find(({ event }) => event === 'gap')?.['refused']).to.equal(onFailure === 'refuse' ? 1 : undefined)
      } finally {
        await stopHosts()
        unmount(disk)
      }
    })
  }

  it('repairs a torn line of a killed process after startup on a full disk', async function () {
    const folder = await makeFolder({})
    const disk = join(folder, 'disk')
    await mkdir(disk)
    mountSmall(this, disk)
    try {
      const options = { file: 'disk/audit.jsonl' }
      const file = join(disk, 'audit.jsonl')
      const first = await startAudited({ folder, options })
      await first.close()
      await appendFile(file, '{"seq":3,"prev":')
      await fill(disk)
      // To the end of the page that the file has already.
      const { size } = await stat(file)
      await appendFile(file, 'x'.repeat(4_096 - size))
      // Without a lock, so that it is the lines that find no room; with a new secret, so that they go to a new file.
      const signers = signersOf(`${SECRET}!`, SECRET)
      const log: string[] = []
      const tell = (_: object, message = '') => void log.push(message)
      const kept = { ...quiet, info: tell, warn: tell, error: tell, child: () => kept }
      const trail = new Trail({ ...ENDLESS, path: file, signers, log: kept })
      await trail.start()
      expect(trail.failure).to.match(/^ENOSPC/)
      await rm(join(disk, 'filler'))
      await eventually('written', () => trail.failure === undefined)
      await trail.close()
      expect(log.filter(message => message === 'the last line of the audit was incomplete')).to.have.length(1)
      expect(await verdictOn(disk, { signers })).to.equal('whole, 1')
      const lines = await linesIn(file)
      expect(lines.map(({ event }) => event)).to.deep.equal(['opened', 'healed', 'started', 'retried', 'closed'])
      const healed = lines.filter(({ event }) => event === 'healed')
      expect(healed.map(({ text }) => String(text).slice(0, 16))).to.deep.equal(['{"seq":3,"prev":'])
      expect(await auditsIn(disk)).to.have.length(2)
    } finally {
      await stopHosts()
      unmount(disk)
    }
  })

  for (const code of ['EIO', 'EACCES']) {
    it(`${code === 'EACCES' ? 'fails' : 'does not fail'} startup on ${code} of the lock and reports a second cause`, async () => {
      const path = join(await makeFolder({}), 'audit.jsonl')
      const told: string[] = []
      const error = (_: object, message = '') => void told.push(message)
      const log = { ...quiet, error, child: () => log }
      const faults = [Object.assign(new Error('full'), { code }), new StartError('MH2202', 'another has it')]
      async function claim() {
        const fault = faults.shift()
        if (fault) throw fault
        return { path }
      }
      const trail = new Trail({ ...ENDLESS, path, signers: signersOf(SECRET), log, claim })
      const failed = await trail.start().then(
        () => undefined,
        (problem: unknown) => problem,
      )
      if (code === 'EACCES') return expect(failed).to.include({ code })
      expect(failed).to.equal(undefined)
      expect(trail.failure).to.equal('full')
      trail.push(JSON.stringify({ event: 'call' }))
      await eventually('the end of it', () => trail.failure === undefined)
      await trail.close()
      expect(told).to.deep.equal(['the audit cannot be written', 'the audit cannot be written'])
      expect((await linesIn(path)).map(({ event }) => event)).to.deep.equal(['opened', 'call', 'closed'])
    })
  }
})
