import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { ERROR_KINDS } from '../../core/http/errors.ts'

const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8')

describe('docs/errors.md', () => {
  it('has each kind once, with the status and the code of the table, and no other', () => {
    const rows = [...page.matchAll(/^\| `(\w+)` \| (\d{3}) \| (-\d{5}) \|/gm)]
    const written = rows.map(([, kind, status, code]) => [kind, Number(status), Number(code)])
    expect(written).to.deep.equal(Object.entries(ERROR_KINDS).map(([kind, { status, code }]) => [kind, status, code]))
  })
})
