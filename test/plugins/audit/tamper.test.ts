// Tamper detection of `verify`: changed fields, lines, file ends and whole files.
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { NO_HASH, plainSigner, sealLine } from '../../../plugins/audit/chain.ts'
import { removeFolders } from '../../config/folder.ts'
import { stopHosts } from '../../support/start-host.ts'
import { auditsIn, linesIn, SECRET, signersOf, startAudited, verdictOn, verifyFolder } from './audited-host.ts'

after(removeFolders)
after(stopHosts)

describe('audit: tamper detection', () => {
  let folder: string
  let file: string
  let whole: string
  let lines: string[]

  before(async () => {
    const host = await startAudited({ options: { arguments: { say: ['path'] } } })
    for (const path of ['/a', '/b', '/c']) await host.call('say', { path }, { 'X-Request-Id': 'mine' })
    await host.call('nothing')
    await host.close()
    folder = host.folder
    file = host.file
    whole = await readFile(file, 'utf8')
    lines = whole.split('\n').slice(0, -1)
  })

  async function verdictWith(changed: readonly string[], expected = {}): Promise<string> {
    await writeFile(file, changed.map(line => `${line}\n`).join(''))
    const verdict = await verdictOn(folder, expected)
    await writeFile(file, whole)
    return verdict
  }

  it('verifies an unchanged chain', async () => {
    expect(lines).to.have.length(6)
    expect(await verdictWith(lines)).to.equal('whole, 1')
  })

  it('detects a change of any field in any line', async () => {
    for (const [index, line] of lines.entries()) {
      const read = JSON.parse(line) as Record<string, unknown>
      for (const [name, value] of Object.entries(read)) {
        const other =
          typeof value === 'number'
            ? value + 1
            : typeof value === 'string'
              ? `${value}`.replace(/.$/, was => (was === '0' ? '1' : '0'))
              : {}
        const changed = JSON.stringify({ ...read, [name]: other })
        const verdict = await verdictWith(lines.with(index, changed))
        expect(verdict, `${name} of line ${index + 1}`).to.match(new RegExp(`^(${index + 1}|file|1): `))
      }
    }
  })

  it('detects changed bytes with the same meaning', async () => {
    const spaced = lines.with(2, String(lines[2]).replace('{', '{ '))
    expect(await verdictWith(spaced)).to.match(/^3: seq 3 was changed/)
  })

  it('detects removed, swapped, repeated and inserted lines', async () => {
    for (let index = 1; index < lines.length - 1; index++) {
      expect(await verdictWith(lines.toSpliced(index, 1))).to.match(
        new RegExp(`^${index + 1}: .*${index + 2}.*${index + 1}.*missing`),
      )
    }
    const [one = '', two = '', three = '', four = ''] = lines
    expect(await verdictWith([one, three, two, four])).to.match(/^2: found seq 3/)
    expect(await verdictWith([one, two, two, three])).to.match(/^3: found seq 2.*repeated/)
    const { seq, hash } = JSON.parse(two)
    const { text } = sealLine('{"event":"call"}', { chain: 'x', seq, hash }, plainSigner)
    expect(await verdictWith([one, two, text.trimEnd(), three])).to.match(/^3: seq 3 was changed/)
    expect(await verdictWith([one, two, 'no line', three])).to.match(/^3: /)
    expect(await verdictWith([one, two, 'x'.repeat(10 * 1024 * 1024), three])).to.match(/^3: /)
    expect(await verdictWith(lines.slice(1))).to.match(/^1: .*first/)
  })

  it('detects truncation only with a head kept elsewhere', async () => {
    const { hash } = JSON.parse(String(lines.at(-1)))
    const cut = lines.slice(0, -2)
    expect(await verdictWith(cut)).to.equal('whole, 1')
    expect(await verdictWith(cut, { heads: [hash] })).to.equal('a head is missing')
    expect(await verdictWith(lines, { heads: [hash] })).to.equal('whole, 1')
    await writeFile(file, whole.slice(0, -40))
    expect(await verdictOn(folder)).to.match(/^6: /)
    await writeFile(file, whole)
  })

  it('detects a chain rewritten without the key', async () => {
    let head = { chain: 'feedfeedfeedfeed', seq: 0, hash: NO_HASH }
    const forged = (algorithm: string, key?: string) => {
      head = { ...head, seq: 0, hash: NO_HASH }
      return [{ event: 'opened', chain: head.chain, algorithm, key }, { event: 'call' }].map(fields => {
        const sealed = sealLine(JSON.stringify(fields), head, plainSigner)
        head = sealed.head
        return sealed.text.trimEnd()
      })
    }
    const [{ key }] = (await linesIn(file)) as [{ key: string }]
    expect(await verdictWith(forged('sha256'))).to.match(/^file: .*key/)
    expect(await verdictWith(forged('hmac-sha256', key))).to.match(/^1: seq 1 was changed/)
    expect(await verdictWith(forged('hmac-sha256', 'ffffffff'))).to.match(/^file: .*ffffffff/)
    expect(await verdictWith(lines, { signers: signersOf(`${SECRET} of another`) })).to.match(/^file: .*key/)
  })

  it('detects a missing file in the middle, but accepts deleted oldest files', async () => {
    const host = await startAudited({ options: { rotate: { size: '1kb' } } })
    // Lines are written together: how many a file takes differs.
    for (let count = 0; (await auditsIn(host.folder)).length < 5 && count < 200; count++) await host.call('say')
    await host.close()
    const files = await auditsIn(host.folder)
    expect(files.length).to.be.greaterThan(3)
    expect(await verdictOn(host.folder)).to.equal('whole, 1')
    await rm(String(files[0]))
    expect(await verdictOn(host.folder)).to.match(/whole, 1|missing/)
    const left = await auditsIn(host.folder)
    await rm(String(left[1]))
    expect(await verdictOn(host.folder)).to.match(/^1: found seq \d+.*\d+ lines/)
  })

  it('detects an entry without a line break at the end of an archive, but accepts a torn line that was healed', async () => {
    const archive = (folder: string) => join(folder, 'audit.2026-01-01T00-00-00-000Z.jsonl')
    const first = await startAudited()
    await first.call('say')
    await first.close()
    const entry = String((await readFile(first.file, 'utf8')).split('\n')[1])
    const torn = (await readFile(first.file, 'utf8')).slice(0, -40)
    await writeFile(archive(first.folder), torn)
    await rm(first.file)
    const second = await startAudited({ folder: first.folder })
    await second.close()
    expect(await verdictOn(first.folder)).to.equal('whole, 1')
    const { chains } = await verifyFolder(first.folder)
    expect(chains[0]?.healed).to.equal(1)
    const { seq, prev } = JSON.parse(entry)
    const ends = [
      entry,
      entry.slice(0, -1),
      `{"seq":${seq + 1},"prev":"${prev}","event":"call","tool":"refund_all"}`,
      'x',
    ]
    const whole = torn.slice(0, torn.lastIndexOf('\n') + 1)
    for (const end of ends) {
      await writeFile(archive(first.folder), whole + end)
      expect(await verdictOn(first.folder)).to.match(
        /^3: it has no end, and no `healed` line of a later file has its hash/,
      )
    }
  })
})
