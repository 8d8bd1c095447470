// The folder of a file that a plugin writes: audit, access-log and store-sqlite share the check.
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { hasSqlite } from './store-sqlite/support/sqlite-files.ts'

const FILES = {
  audit: { file: './state/audit.jsonl' },
  'access-log': { file: './state/access.log' },
  ...(hasSqlite && { 'store-sqlite': { file: './state/host.db' } }),
}

async function start(plugins: object, folder: string) {
  const { log, host } = await startHost(
    {
      secrets: ['a secret for tests, long enough to be one'],
      toolsets: { all: [defineTool({ name: 'echo', handler: () => 'echoed' })] },
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, ...plugins },
    },
    folder,
  )
  await host.close({ grace: 0 })
  return log
}

/** The messages of warnings at startup, with a `state` folder of this mode. */
async function warningsFor(plugins: object, mode: number): Promise<string[]> {
  const folder = await makeFolder({ 'state/other': '' })
  chmodSync(`${folder}/state`, mode)
  const log = await start(plugins, folder)
  return log.filter(({ level }) => level === 'warn').map(({ message }) => String(message))
}

if (process.platform !== 'win32')
  describe('a file that a plugin writes', () => {
    after(async () => {
      await stopHosts()
      await removeFolders()
    })

    for (const [name, options] of Object.entries(FILES)) {
      const file = options.file.replace('./state', './new/state')

      it(`of ${name} gets a private folder that Git ignores`, async () => {
        const folder = await makeFolder({})
        await start({ [name]: { file } }, folder)
        expect(existsSync(join(folder, file))).to.equal(true)
        expect(readFileSync(join(folder, 'new/state/.gitignore'), 'utf8')).to.equal('*\n')
        expect(statSync(join(folder, 'new/state')).mode & 0o027).to.equal(0)
        // A second start changes nothing.
        writeFileSync(join(folder, 'new/state/.gitignore'), '')
        await start({ [name]: { file } }, folder)
        expect(readFileSync(join(folder, 'new/state/.gitignore'), 'utf8')).to.equal('')
      })

      it(`of ${name} stops startup if its folder cannot be created`, async () => {
        const folder = await makeFolder({ new: 'a file' })
        expect(String(await rejectionOf(start({ [name]: { file } }, folder)))).to.match(
          /cannot be written: \S+\/new is not a folder, or this user cannot write to it/,
        )
      })

      it(`of ${name} stops startup if only the file cannot be written`, async function () {
        // Root cannot write to this file either.
        const readOnly = '/proc/sys/kernel/random/boot_id'
        if (!existsSync(readOnly)) this.skip()
        expect(String(await rejectionOf(start({ [name]: { file: readOnly } }, await makeFolder({}))))).to.match(
          /boot_id cannot be written: this user cannot write to the file \(EACCES/,
        )
      })

      it(`of ${name} in a folder that anyone can write causes a warning, except with a sticky bit`, async () => {
        const [warning = '', ...more] = await warningsFor({ [name]: options }, 0o777)
        expect(warning).to.match(
          /anyone on this machine can replace files in \S+\/state \(mode 777\); chmod o-w \S+state/,
        )
        expect(more).to.deep.equal([])
        for (const mode of [0o755, 0o775, 0o1777])
          expect(await warningsFor({ [name]: options }, mode), mode.toString(8)).to.deep.equal([])
      })
    }
  })
