// Tests that each row of the table in docs/redis.md names an existing test.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { ROOT, readPage } from '../support/doc-blocks.ts'

/** The rows that follow this heading of a table. */
const rowsAfter = (page: string, heading: string) =>
  (page.split(heading)[1] ?? '')
    .split('\n')
    .slice(1)
    .filter(line => line.startsWith('| '))

/** What is wrong with a row; undefined: nothing. */
function faultOf(row: string): string | undefined {
  const [situation = '', , , , shown = ''] = row.split(' | ')
  const [, file, title] = /^`(test\/[\w/.-]+)`: (.+) \|$/.exec(shown) ?? []
  if (file === undefined || title === undefined) return `${situation}: it names no test`
  if (!existsSync(join(ROOT, file))) return `${situation}: there is no ${file}`
  const names = [...readFileSync(join(ROOT, file), 'utf8').matchAll(/\bit\(\s*(['`])(.*?)\1,/g)].map(
    ([, , name]) => name,
  )
  return names.some(name => name?.includes(title)) ? undefined : `${situation}: ${file} has no test "${title}"`
}

describe('Failure table of docs/redis.md', () => {
  it('names existing tests', () => {
    const rows = rowsAfter(readPage('docs/redis.md'), '| Situation | The operator sees')
    const faults = rows.flatMap(row => faultOf(row) ?? [])
    expect(faults).to.deep.equal([])
    expect(rows.length).to.be.above(20)
  })

  it('is rejected if it names a missing test', () => {
    const row = (shown: string) => `| a | b | c | d | ${shown} |`
    expect(faultOf(row('nothing'))).to.equal('| a: it names no test')
    expect(faultOf(row('`test/redis/none.test.ts`: a'))).to.equal('| a: there is no test/redis/none.test.ts')
    expect(faultOf(row('`test/redis/tls.system.ts`: no such'))).to.include('has no test "no such"')
  })
})
