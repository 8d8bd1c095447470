// Tests the codes of startup errors and log lines, and the pages that list them.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import {
  AREAS,
  codesPages,
  errorsPage,
  parseExplanations,
  readAll,
  readCodes,
  readExplanations,
} from '../../build/write-codes.ts'
import { ROOT } from '../support/doc-blocks.ts'

const pageAt = (path: string) => readFileSync(join(ROOT, path), 'utf8')

describe('Codes', () => {
  const { uses, bare } = readAll()

  it('are on each log line except debug lines', () => {
    expect(bare).to.deep.equal([])
  })

  it('are in the area of their first digits', () => {
    expect(uses.length).to.be.greaterThan(300)
    expect(uses.filter(({ code }) => !Object.keys(AREAS).includes(code.slice(0, 4)))).to.deep.equal([])
  })

  it('are the same for the same message', () => {
    const codes = new Map<string, Set<string>>()
    for (const { code, messages } of uses) {
      for (const text of messages.filter(text => text.replace(/plugins\.…|\W/g, '').length > 20)) {
        codes.set(text, new Set([...(codes.get(text) ?? []), code]))
      }
    }
    expect([...codes].filter(([, { size }]) => size > 1).map(([text, all]) => [text, ...all])).to.deep.equal([])
  })

  it('are found in a source with their messages', () => {
    const source = `
      const fail = (code: string, why: string) => new StartError(code, \`it \${why}\`)
      function check(log: Log, path: string) {
        const fix = 'do this'
        log.warn({ code: 'MH1001', path }, \`\${path} is odd; \${fix}\`)
        log.error({ path }, 'no code')
        if (path) throw fail('MH1002', path ? 'is one' : 'is two')
      }`
    const { uses, bare } = readCodes('a.ts', source)
    expect(bare).to.deep.equal(['a.ts:6'])
    expect(uses.map(({ code, messages }) => [code, ...messages])).to.deep.equal([
      ['MH1001', '… is odd; do this'],
      ['MH1002', 'is one', 'is two'],
    ])
  })

  it('are listed in docs/codes.md and docs/codes-plugins.md, as `npm run docs:codes` writes them', () => {
    const pages = Object.entries(codesPages(uses, readExplanations()))
    expect(pages).to.have.lengthOf(2)
    for (const [path, text] of pages) expect(pageAt(path), path).to.equal(text)
  })

  it('keep their explanations', () => {
    const page =
      codesPages(
        uses,
        new Map([
          ['MH1001', '  Do this.\n'],
          ['MH0000', '  Unused.\n'],
        ]),
      )['docs/codes.md'] ?? ''
    expect([...parseExplanations(page)]).to.deep.equal([['MH1001', '  Do this.\n']])
    expect(readExplanations().size).to.be.above(50)
  })

  it('of refusals are listed in docs/errors.md', () => {
    const page = pageAt('docs/errors.md')
    expect(page).to.equal(errorsPage(page))
    expect(page).not.to.match(/^\| `\w+` \| .*\| \| \|$/m)
  })
})
