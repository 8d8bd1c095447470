// The access log file destination: appending to existing files with and without a final newline.
import { appendFile, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Destination, openFile } from '../../../plugins/access-log/log-writer.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { eventually } from '../../support/eventually.ts'

let opened: Destination | undefined
afterEach(() => opened?.close())
after(removeFolders)

const WHOLE = '{"time":1}\n'
const TORN = '{"time":0,"outcome":"ok"'

async function fileWith(text: string): Promise<string> {
  const file = join(await makeFolder({}), 'access.log')
  await writeFile(file, text)
  return file
}

function open(file: string): Destination {
  opened = openFile(file)
  return opened
}

describe('Access log file destination', () => {
  for (const [what, before, after] of [
    ['a torn line', TORN, `${TORN}\n${WHOLE}${WHOLE}`],
    ['whole lines', WHOLE, WHOLE.repeat(3)],
    ['an empty file', '', WHOLE.repeat(2)],
  ] as const) {
    it(`starts on a new line after ${what}`, async () => {
      const file = await fileWith(before)
      const destination = open(file)
      for (let count = 0; count < 2; count++) await destination.write(Buffer.from(WHOLE), 0)
      expect(await readFile(file, 'utf8')).to.equal(after)
    })
  }

  it('starts on a new line in a replacement file with a torn last line', async () => {
    const file = await fileWith(WHOLE)
    const destination = open(file)
    const other = await fileWith('')
    await appendFile(other, TORN)
    await rename(other, file)
    await eventually('the other file', async () => {
      await destination.write(Buffer.from(WHOLE), 0)
      return (await readFile(file, 'utf8')).length > TORN.length
    })
    expect(await readFile(file, 'utf8')).to.equal(`${TORN}\n${WHOLE}`)
  })
})
