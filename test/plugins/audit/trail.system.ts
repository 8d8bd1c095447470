// The audit file under rotation, external changes, full disks and killed processes.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, mkdir, open, readdir, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { createHost } from '../../../core/create-host.ts'
import { shownTorn } from '../../../plugins/audit/files.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { compiledFile } from '../../support/compiled.ts'
import { eventually } from '../../support/eventually.ts'
import { mountSmall, unmount } from '../../support/small-disk.ts'
import { stopHosts } from '../../support/start-host.ts'
import { auditsIn, linesIn, SECRET, startAudited, verdictOn, verifyFolder } from './audited-host.ts'

after(removeFolders)
afterEach(stopHosts)

const events = async (file: string): Promise<unknown[]> => (await linesIn(file)).map(({ event }) => event)
/** Of a file that may not be there yet. */
const eventsSoon = (file: string) => events(file).catch((): unknown[] => [])

describe('audit: file', () => {
  it('rotates when full and keeps the configured number of files', async () => {
    const { call, close, folder, log } = await startAudited({ options: { rotate: { size: '2kb', keep: 3 } } })
    const heads = () =>
      log.filter(({ message }) => message === 'The audit continues in a new file').map(({ head }) => String(head))
    // How many lines are one write, and so how full a file becomes, is the machine's.
    for (let count = 0; count < 1_000 && heads().length < 5; count++) await call('say')
    await close()
    const files = await auditsIn(folder)
    expect(files).to.have.length(4)
    for (const file of files) expect((await events(file))[0]).to.equal('opened')
    const { chains } = await verifyFolder(folder)
    expect(chains).to.have.length(1)
    expect(chains[0]).not.to.have.property('broken')
    expect(chains[0]?.firstSeq).to.be.greaterThan(1)
    expect(heads().length).to.be.greaterThan(4)
    expect((await verifyFolder(folder, { heads: heads().slice(-2) })).missingHeads).to.deep.equal([])
  })

  it('continues the chain after logrotate, removal or truncation', async () => {
    const { call, close, folder, file, log } = await startAudited()
    await call('say')
    await eventually(
      'the line',
      () => events(file),
      found => found.includes('call'),
    )
    await rename(file, join(folder, 'audit.1.jsonl'))
    await call('say')
    await eventually(
      'a new file',
      () => eventsSoon(file),
      found => found.includes('call'),
    )
    expect(await verdictOn(folder)).to.equal('whole, 1')
    await rename(file, join(folder, 'audit.2.jsonl'))
    await writeFile(file, '')
    await call('say')
    await eventually(
      'the line in what logrotate made',
      () => eventsSoon(file),
      found => found.includes('call'),
    )
    await truncate(file, 0)
    await call('say')
    await eventually(
      'the line in what was emptied',
      () => events(file),
      found => found.includes('call'),
    )
    await close()
    expect(await verdictOn(folder)).to.match(/lines are missing/)
    expect(log.map(({ message }) => message)).to.include('Another program truncated the audit file')
    for (const name of ['audit.1.jsonl', 'audit.2.jsonl']) await rm(join(folder, name))
    expect(await verdictOn(folder)).to.equal('whole, 1')
  })

  it('repairs a torn last line of a killed process and logs it', async () => {
    for (const cut of [40, undefined]) {
      const first = await startAudited()
      await first.call('say')
      await first.close()
      const text = await readFile(first.file, 'utf8')
      // All but 40 bytes of the last line; or a first line of which there is only a part.
      await writeFile(first.file, cut === undefined ? text.slice(0, 30) : text.slice(0, -cut))
      const second = await startAudited({ folder: first.folder })
      await second.call('say')
      await second.close()
      expect(second.log.map(({ message }) => message).join()).to.match(/the last line of the audit was incomplete/)
      const healed = (await linesIn(first.file)).find(({ event }) => event === 'healed')
      expect(healed?.['text']).to.match(/^\{"seq":/)
      expect(await verdictOn(first.folder)).to.equal('whole, 1')
    }
  })

  it('strips terminal control characters from a reported torn line', () => {
    const torn = Buffer.from('{"name":"J\u00fcrgen \u00db\u009b2J\u001b[31m\n\0\0')
    expect(shownTorn(torn)).to.equal('{"name":"J\u00fcrgen \u00db?2J?[31m?[2 zero bytes]')
    expect(shownTorn(Buffer.from([0x9b, 0x41]))).to.equal('\ufffdA')
    expect(shownTorn(Buffer.alloc(5_000, 'x'))).to.have.length(2_049)
  })

  it('repairs trailing zero bytes of a power failure', async () => {
    for (const rest of ['', 'x","hash":"0"}\n', '\0\0']) {
      const first = await startAudited()
      await first.call('say')
      await first.close()
      await appendFile(first.file, `${'\0'.repeat(5_000)}${rest}`)
      const second = await startAudited({ folder: first.folder })
      await second.close()
      const healed = (await linesIn(first.file)).find(({ event }) => event === 'healed')
      expect(healed?.['text']).to.match(/^\[500[02] zero bytes\]/)
      expect(await verdictOn(first.folder)).to.equal('whole, 1')
    }
  })

  it('fails startup if the last line is foreign, with its location and a fix', async () => {
    const { file, folder, close } = await startAudited()
    await close()
    const whole = await readFile(file, 'utf8')
    for (const foreign of ['rotated by me\n', '{"seq":99}\n']) {
      await writeFile(file, whole + foreign)
      const error = await startAudited({ folder }).then(
        () => undefined,
        (thrown: unknown) => String(thrown),
      )
      expect(error).to.match(/3.*mcp-host.*audit\.jsonl/s)
      expect(await readFile(file, 'utf8')).to.equal(whole + foreign)
    }
  })

  it('detects external changes during writing, and verify reports their location', async () => {
    const { call, close, folder, file, log } = await startAudited()
    const callAndSee = async (event: string, count: number) => {
      await call('say')
      await eventually(
        event,
        () => events(file),
        found => found.filter(one => one === event).length === count,
      )
    }
    await callAndSee('call', 1)
    await callAndSee('call', 2)
    expect(await events(file)).not.to.include('changed')
    const edit = async () => (await readFile(file, 'utf8')).replace('"name":"say"', '"name":"ask"')
    // In its place, and as an editor does it: a new file of the old name.
    const handle = await open(file, 'r+')
    await handle.write(await edit(), 0)
    // Clocks of file systems tick in milliseconds.
    await handle.utimes(new Date(), new Date(Date.now() + 1_000))
    await handle.close()
    await callAndSee('changed', 1)
    await writeFile(`${file}.new`, await edit())
    await rename(`${file}.new`, file)
    await callAndSee('changed', 2)
    await close()
    const changes = (await linesIn(file)).filter(({ event }) => event === 'changed')
    expect(changes.map(({ how }) => how)).to.deep.equal(['edited', 'replaced'])
    const told = log.filter(({ code, how }) => code === 'MH2220' && how !== undefined)
    expect(told.map(({ how }) => how)).to.deep.equal(['edited', 'replaced'])
    expect(await verdictOn(folder)).to.match(/^2: seq 2 was changed/)
  })

  it('fails startup if the file is not an audit file, and leaves it unchanged', async () => {
    const folder = await makeFolder({ 'audit.jsonl': 'my diary\n' })
    const error = await startAudited({ folder }).then(
      () => undefined,
      (thrown: unknown) => String(thrown),
    )
    expect(error).to.match(/audit.*`file`/s)
    expect(await readFile(join(folder, 'audit.jsonl'), 'utf8')).to.equal('my diary\n')
  })

  it('continues after its folder was removed and created again, with its lock', async () => {
    const folder = await makeFolder({ 'logs/.keep': '' })
    const logs = join(folder, 'logs')
    const { call, close } = await startAudited({ folder, options: { file: 'logs/audit.jsonl' } })
    await rm(logs, { recursive: true })
    await mkdir(logs)
    await call('say')
    await eventually(
      'the line',
      () => eventsSoon(join(logs, 'audit.jsonl')),
      found => found.includes('call'),
    )
    expect(await readdir(logs)).to.have.members(['audit.jsonl', 'audit.jsonl.lock'])
    await close()
  })

  it('has one writer: a second host fails startup, and a concurrent writer is detected', async () => {
    const one = await startAudited()
    const error = await startAudited({ folder: one.folder }).then(
      () => undefined,
      (thrown: unknown) => String(thrown),
    )
    expect(error).to.match(
      new RegExp(`audit\\.jsonl is written by process ${process.pid} on .*\`file\` of its own`, 's'),
    )
    await one.call('say')
    await eventually(
      'the line',
      () => events(one.file),
      found => found.includes('call'),
    )
    await appendFile(one.file, '{"seq":99}\n')
    await one.call('say')
    const told = () => one.log.find(({ message }) => message === 'the audit cannot be written')
    expect(String((await eventually('the log', told))?.['problem'])).to.match(/is also written by another program/)
    await one.close()
    const after = await makeFolder({})
    await (await startAudited({ folder: after })).close()
    await (await startAudited({ folder: after })).close()
  })

  it('is separate for each process of a multi-process host', async () => {
    const folder = await makeFolder({})
    const start = async () => {
      const host = await createHost(
        {
          server: { name: 'many', version: '1' },
          http: { port: 0 },
          secrets: [SECRET],
          toolsets: { none: [] },
          routes: { '/mcp': { toolsets: 'none', stateless: true } },
          plugins: { 'transport-streamable': {}, audit: { file: 'audit.jsonl' } },
        },
        { directory: folder, processes: 2, log: quiet },
      )
      await host.listen()
      await fetch(`${host.url}/gone`)
      return host
    }
    const hosts = await Promise.all([start(), start(), start()])
    for (const host of hosts) await host.close({ grace: 0 })
    await (await start()).close({ grace: 0 })
    expect((await auditsIn(folder)).map(file => file.slice(folder.length + 1))).to.deep.equal([
      'audit.1.jsonl',
      'audit.2.jsonl',
      'audit.3.jsonl',
    ])
    expect(await verdictOn(folder)).to.equal('whole, 3')
  })
})

const ignore = () => undefined
const quiet = { debug: ignore, info: ignore, warn: ignore, error: ignore, child: () => quiet }

describe('audit: write failures', () => {
  /** Takes the folder of the file away, and gives it back. */
  async function startAway(onFailure: 'refuse' | 'warn') {
    const folder = await makeFolder({ 'logs/.keep': '' })
    const options = { file: 'logs/audit.jsonl', onFailure }
    const host = await startAudited({ folder, options, config: { plugins: { health: {} } } })
    const logs = join(folder, 'logs')
    const takeAway = () => rename(logs, join(folder, 'away'))
    const giveBack = () => rename(join(folder, 'away'), logs)
    const says = (message: string) => eventually(message, () => host.log.find(line => line.message === message))
    const ready = async () => (await fetch(`${host.url}/health`)).status
    return { ...host, logs, file: join(logs, 'audit.jsonl'), takeAway, giveBack, says, ready }
  }

  it('with `refuse`, refuses calls and readiness until writing recovers', async () => {
    const { url, call, close, logs, file, takeAway, giveBack, says, ready } = await startAway('refuse')
    expect(await ready()).to.equal(200)
    await takeAway()
    expect((await call('say')).status, 'the call that found it out').to.equal(200)
    expect(String((await says('the audit cannot be written'))?.['problem'])).to.match(/ENOENT/)
    const refused = await call('say')
    expect(refused.status).to.equal(503)
    expect(refused.headers.get('retry-after')).to.equal('2')
    expect(refused.message.error.message).to.match(/^Service unavailable: calls cannot be recorded/)
    const { status, reasons } = JSON.parse(await (await fetch(`${url}/health`)).text())
    expect(status).to.equal('not ready')
    expect(reasons.audit).to.match(/ENOENT/)
    await giveBack()
    await says('the audit is written again')
    expect((await call('say')).status).to.equal(200)
    expect(await ready()).to.equal(200)
    await close()
    const found = await linesIn(file)
    expect(found.filter(({ name }) => name === 'say')).to.have.length(2)
    expect(found.find(({ event }) => event === 'gap')).to.include({ lost: 0, refused: 1 })
    expect(await verdictOn(logs)).to.equal('whole, 1')
  })

  it('with `warn`, serves calls and writes the lines later', async () => {
    const { call, close, logs, file, log, takeAway, giveBack, says, ready } = await startAway('warn')
    await takeAway()
    for (let count = 0; count < 20; count++) expect((await call('say')).status).to.equal(200)
    await says('the audit cannot be written')
    expect(await ready()).to.equal(200)
    await giveBack()
    await says('the audit is written again')
    await close()
    expect(log.filter(({ message }) => message === 'the audit cannot be written')).to.have.length(1)
    expect((await events(file)).filter(event => event === 'call')).to.have.length(20)
    expect(await verdictOn(logs)).to.equal('whole, 1')
  })

  for (const onFailure of ['refuse', 'warn'] as const) {
    it(`handles a full disk with ${onFailure}`, async function () {
      const folder = await makeFolder({})
      const disk = join(folder, 'disk')
      await mkdir(disk)
      mountSmall(this, disk, 'rw', 256)
      const options = { file: 'disk/audit.jsonl', onFailure }
      const { call, close, log, url } = await startAudited({ folder, options })
      try {
        // Its space is enough for all lines that wait when the failure is reported, also on a slow machine.
        await writeFile(join(disk, 'filler'), 'x'.repeat(236 * 1024))
        const told = () => log.find(({ message }) => message === 'the audit cannot be written')
        const statuses: number[] = []
        while (!told() && statuses.length < 200) statuses.push((await call('say')).status)
        expect(String(told()?.['problem'])).to.match(/ENOSPC/)
        expect((await call('say')).status).to.equal(onFailure === 'refuse' ? 503 : 200)
        await Promise.all(Array.from({ length: 5 }, () => fetch(`${url}/gone`)))
        await rm(join(disk, 'filler'))
        await eventually('written again', () => log.find(({ message }) => message === 'the audit is written again'))
        expect((await call('say')).status).to.equal(200)
        await close()
        expect(await verdictOn(disk)).to.equal('whole, 1')
        const calls = (await linesIn(join(disk, 'audit.jsonl'))).filter(({ name }) => name === 'say')
        const answered = statuses.filter(status => status === 200).length
        expect(calls).to.have.length(answered + (onFailure === 'refuse' ? 1 : 2))
      } finally {
        await close()
        unmount(disk)
      }
    })
  }

  it('drops lines beyond the buffer limit and records their number in the chain', async () => {
    const { Trail } = await import('../../../plugins/audit/trail.ts')
    const { signersOf } = await import('./audited-host.ts')
    const folder = await makeFolder({ 'logs/.keep': '' })
    const path = join(folder, 'logs', 'audit.jsonl')
    const settings = {
      path,
      signers: signersOf(SECRET),
      node: 'n',
      log: quiet,
      sync: 'never' as const,
      headEvery: 60_000,
    }
    const trail = new Trail({ ...settings, rotateAt: Infinity, rotateAfter: Infinity, keep: Infinity })
    await trail.start()
    await rename(join(folder, 'logs'), join(folder, 'away'))
    const fields = JSON.stringify({ event: 'call', text: 'x'.repeat(200_000) })
    const last = () => JSON.stringify({ event: 'call', n: 1 })
    trail.push(fields)
    await eventually('the failure', () => trail.failure)
    for (let count = 0; count < 49; count++) trail.push(fields)
    trail.push(last())
    await rename(join(folder, 'away'), join(folder, 'logs'))
    await eventually('the end of it', () => trail.failure === undefined)
    trail.push(last())
    await trail.close()
    const lines = await linesIn(path)
    const kept = lines.filter(({ text }) => text !== undefined).length
    expect(kept).to.be.greaterThan(35)
    const gap = lines.find(({ event }) => event === 'gap')
    expect(gap?.['lost']).to.equal(51 - kept)
    expect(await verdictOn(join(folder, 'logs'))).to.equal('whole, 1')
  })

  it('drains waiting lines on close after a slow disk', async () => {
    const { Trail } = await import('../../../plugins/audit/trail.ts')
    const { signersOf } = await import('./audited-host.ts')
    const folder = await makeFolder({})
    const path = join(folder, 'audit.jsonl')
    const settings = { path, signers: signersOf(SECRET), node: 'n', log: quiet, sync: 'never' as const }
    const ends = { headEvery: 60_000, rotateAt: Infinity, rotateAfter: Infinity, keep: Infinity }
    const counts = { written: 0, lost: 0 }
    const count = (what: keyof typeof counts, more: number) => {
      counts[what] += more
    }
    const trail = new Trail({ ...settings, ...ends, count })
    await trail.start()
    const fields = JSON.stringify({ event: 'call', text: 'x'.repeat(200_000) })
    for (let count = 0; count < 50; count++) trail.push(fields)
    expect(trail.failure).to.match(/disk is too slow/)
    // Nothing more is pushed: with `refuse` a call that is turned away leaves no line.
    trail.countRefused()
    await eventually('the end of it', () => trail.failure === undefined)
    await trail.close()
    const lines = await linesIn(path)
    const kept = lines.filter(({ text }) => text !== undefined).length
    expect(lines.find(({ event }) => event === 'gap')).to.include({ lost: 50 - kept, refused: 1 })
    // With the lines `gap` and `closed`.
    expect(counts).to.deep.equal({ written: kept + 2, lost: 50 - kept })
    expect(await verdictOn(folder)).to.equal('whole, 1')
  })
})

describe('audit: SIGKILL', () => {
  it('leaves a verifiable chain under load, and the next host continues it', async () => {
    const folder = await makeFolder({})
    const command = [compiledFile('test/plugins/audit/busy-host.ts'), folder]
    const child = spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = once(child, 'close')
    let text = ''
    for await (const chunk of child.stdout) {
      text += chunk
      if (text.split('\n').length > 60) break
    }
    child.kill('SIGKILL')
    await ended
    const last = await startAudited({ folder })
    await last.close()
    const { chains } = await verifyFolder(folder)
    expect(chains).to.have.length(1)
    expect(chains[0]).not.to.have.property('broken')
  })
})
