// Tests the type errors that `mcp-host dev` prints.
import { expect } from 'chai'
import { formatTypeErrors } from '../../cli/dev/type-check.ts'

describe('type errors of a project', () => {
  it('are at most eight, without control characters', () => {
    const one = (line: number) => `tools/a.ts(${line},5): error TS1: \u001b[2J${'long '.repeat(200)}`
    const shown = formatTypeErrors(Array.from({ length: 11 }, (_, index) => one(index + 1)).join('\n'))
    expect(shown).to.have.length(9)
    expect(shown.at(-1)).to.match(/^types.*3.*--noEmit$/)
    for (const line of shown) expect(line).to.match(/^[ -~…]{1,320}$/)
    expect(formatTypeErrors('Found 2 errors.\n')).to.deep.equal([])
    const general = ['error TS5083: Cannot read file', 'error TS1: no']
    expect(formatTypeErrors(general.join('\n'))).to.deep.equal([`types: ${general[0]}`])
    expect(formatTypeErrors([one(1), ...general].join('\n'))).to.have.length(1)
  })
})
