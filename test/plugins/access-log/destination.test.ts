// Where lines go: what somebody else left at the end of a file costs no line of ours.
import { appendFile, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Destination, toFile } from '../../../plugins/access-log/destination.ts'
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
  opened = toFile(file)
  return opened
}

describe('the file of an access log', () => {
  for (const [what, before, after] of [
    ['a torn line', TORN, `${TORN}\n${WHOLE}${WHOLE}`],
    ['whole lines', WHOLE, WHOLE.repeat(3)],
    ['nothing', '', WHOLE.repeat(2)],
  ] as const) {
    it(`begins a line of its own behind ${what}`, async () => {
      const file = await fileWith(before)
      const destination = open(file)
      for (let count = 0; count < 2; count++) await destination.write(Buffer.from(WHOLE), 0)
      expect(await readFile(file, 'utf8')).to.equal(after)
    })
  }

  it('begins a line of its own in another file that it follows to', async () => {
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
