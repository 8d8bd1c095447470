// The failure table of docs/redis.md names the test file of each row.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { ROOT, readPage } from '../support/doc-blocks.ts'

describe('Failure table of docs/redis.md', () => {
  it('names an existing test file in each row', () => {
    const [, table = ''] = readPage('docs/redis.md').split('| Situation | The operator sees')
    const rows = table.split('\n').filter(line => /^\| [^-]/.test(line))
    expect(rows).to.have.length.above(20)
    const hasTest = (row: string) => {
      const [, file] = /\| `(test\/[\w/.-]+)` \|$/.exec(row) ?? []
      return file !== undefined && existsSync(join(ROOT, file))
    }
    expect(rows.filter(row => !hasTest(row))).to.deep.equal([])
  })
})
