// Startup errors of store-sqlite with real files: clear messages, unchanged files, and `ifDamaged`.
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { expect } from 'chai'
import { StartError } from '../../../core/plugin.ts'
import { mountSmall, unmount } from '../../support/small-disk.ts'
import { closeFiles, type FileSettings, hasSqlite, newFile, newFolder, openFile } from './support/sqlite-files.ts'

let filled: string

/** A closed file with some hundred events. */
function filledFile(): string {
  const file = newFile()
  copyFileSync(filled, file)
  return file
}

function overwrite(file: string, from: number, bytes: number) {
  const descriptor = openSync(file, 'r+')
  writeSync(descriptor, Buffer.alloc(bytes, 0xab), 0, bytes, from)
  closeSync(descriptor)
}

async function refusal(file: string, settings?: FileSettings): Promise<string> {
  const opened = await openFile(file, settings).catch((error: unknown) => error)
  expect(opened).to.be.instanceOf(StartError)
  const { message } = opened as StartError
  expect(message).to.include(file)
  return message
}

const DAMAGES: Readonly<Record<string, (file: string) => void>> = {
  'bytes in its middle are overwritten': file => overwrite(file, 40_000, 200_000),
  'its second half is gone': file => truncateSync(file, 120_000),
  'its header is overwritten': file => overwrite(file, 0, 100),
}

if (hasSqlite) {
  describe('store-sqlite: startup errors', () => {
    before(async () => {
      filled = newFile()
      const { events, writer } = await openFile(filled)
      for (let known = 0; known < 300; known++) await events.append('session', 'stream', `${known} `.repeat(500), known)
      await writer.close()
    })
    after(closeFiles)

    for (const [damage, act] of Object.entries(DAMAGES)) {
      it(`fails if ${damage}, and with \`ifDamaged\` moves the unchanged file away and starts empty`, async () => {
        const file = filledFile()
        act(file)
        const before = readFileSync(file)
        const why = await refusal(file)
        expect(why).to.match(/damaged|not a database/)
        expect(why).to.include("`ifDamaged: 'replace'`").and.to.include('backup')
        const { events, log, writer } = await openFile(file, { ifDamaged: 'replace' })
        expect(await events.after('session', 'stream', 0)).to.equal(undefined)
        expect(await events.append('session', 'stream', 'new', 0)).to.equal(1)
        const aside = readdirSync(dirname(file)).filter(name => /^host\.db\.damaged-[\dTZ-]+$/.test(name))
        expect(aside).to.have.lengthOf(1)
        expect(readFileSync(join(dirname(file), aside[0] ?? '')).equals(before)).to.equal(true)
        const told = log.filter(({ level }) => level === 'error')
        expect(told.map(({ damaged }) => basename(String(damaged)))).to.deep.equal(aside)
        expect(String(told[0]?.['fix'])).to.include('backup')
        await writer.close()
      })
    }

    it('fails on a file that is not a database', async () => {
      const file = newFile()
      writeFileSync(file, 'some notes of mine\n'.repeat(100))
      expect(await refusal(file))
        .to.include('not a database')
        .and.to.include('another `file`')
      expect(readFileSync(file, 'utf8')).to.match(/^some notes of mine/)
    })

    it('fails on the database of another program, with any `ifDamaged`', async () => {
      const file = newFile()
      const { DatabaseSync } = await import('node:sqlite')
      const other = new DatabaseSync(file)
      other.exec('CREATE TABLE theirs (id INTEGER)')
      other.close()
      for (const ifDamaged of ['stop', 'replace'] as const) {
        expect(await refusal(file, { ifDamaged })).to.include('database of another program')
      }
    })

    it('fails on a file of another version, with any `ifDamaged`', async () => {
      const file = filledFile()
      const { DatabaseSync } = await import('node:sqlite')
      for (const [version, ifDamaged] of [
        [5, 'stop'],
        [99, 'replace'],
      ] as const) {
        const other = new DatabaseSync(file)
        other.exec(`PRAGMA user_version = ${version}`)
        other.close()
        expect(await refusal(file, { ifDamaged }))
          .to.include('another version of mcp-host')
          .and.to.include(`has version ${version}`)
      }
    })

    it('fails if the path is a folder, or a parent is a file', async () => {
      const file = newFile()
      mkdirSync(file)
      expect(await refusal(file)).to.include('cannot be opened')
      const inFile = join(newFile(), 'inner.db')
      writeFileSync(dirname(inFile), '')
      expect(await refusal(inFile)).to.include('cannot be opened')
    })

    it('fails on a read-only disk', async function () {
      const folder = newFolder()
      mountSmall(this, folder, 'ro')
      try {
        expect(await refusal(join(folder, 'host.db'))).to.match(/is read-only|cannot be opened/)
      } finally {
        unmount(folder)
      }
    })

    it('fails on a disk without space for an empty file', async function () {
      const folder = newFolder()
      mountSmall(this, folder)
      try {
        expect(await refusal(join(folder, 'host.db')))
          .to.include('the disk is full')
          .and.to.include('free space')
      } finally {
        unmount(folder)
      }
    })

    it('fails while another program locks the file', async () => {
      const file = filledFile()
      const { DatabaseSync } = await import('node:sqlite')
      const other = new DatabaseSync(file)
      other.exec('BEGIN EXCLUSIVE')
      // What is missing in the file makes it write at the start.
      try {
        expect(await refusal(file, { hostId: 'another' })).to.include('the file is locked by another program')
      } finally {
        other.close()
      }
      await openFile(file, { hostId: 'another' })
    })
  })
}
