// Tests that docs/errors.md lists every error kind with its status and code.
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { ERROR_KINDS } from '../../core/http/errors.ts'

const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8')

describe('docs/errors.md', () => {
  it('lists each error kind once with its HTTP status and error code', () => {
    const rows = [...page.matchAll(/^\| `(\w+)` \| (\d{3}) \| (-\d{5}) \|/gm)]
    const written = rows.map(([, kind, status, code]) => [kind, Number(status), Number(code)])
    expect(written).to.deep.equal(Object.entries(ERROR_KINDS).map(([kind, { status, code }]) => [kind, status, code]))
  })
})
