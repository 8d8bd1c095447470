// Order of full audit files.
import { basename } from 'node:path'
import { expect } from 'chai'
import { archivesOf, removeOldest } from '../../../plugins/audit/files.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'

after(removeFolders)

const FULL = [
  'a.2026-11-22T18-05-09-122Z-3.jsonl',
  'a.2026-11-22T18-05-09-123Z.jsonl',
  'a.2026-11-22T18-05-09-123Z-2.jsonl',
  'a.2026-11-22T18-05-09-123Z-10.jsonl',
  'a.2026-11-22T18-05-09-124Z.jsonl',
]

describe('audit: archived files', () => {
  it('are sorted by time, then number, and the oldest are deleted first', async () => {
    const others = ['a.jsonl', 'a.1.jsonl', 'a.2026-11-22T18-05-09-123Z-x.jsonl', 'b.2026-11-22T18-05-09-123Z.jsonl']
    const folder = await makeFolder(Object.fromEntries([...FULL, ...others].map(name => [name, ''])))
    const path = `${folder}/a.jsonl`
    expect((await archivesOf(path)).map(file => basename(file))).to.deep.equal(FULL)
    expect((await removeOldest(path, 2)).map(file => basename(file))).to.deep.equal(FULL.slice(0, 3))
  })
})
