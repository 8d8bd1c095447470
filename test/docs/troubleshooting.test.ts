// Tests that messages quoted in docs/troubleshooting.md exist in the sources.
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { globSync } from 'tinyglobby'
import { ROOT, readPage } from '../support/doc-blocks.ts'

/** Texts of a source as they are told: pieces joined, values as `…`. */
function toldBy(source: string): string {
  return source.replaceAll(/['`"] \+\s+['`"]/g, '').replaceAll(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, '…')
}

const sources = globSync(['core/**/*.ts', 'plugins/**/*.ts', 'cli/**/*.ts', 'client/**/*.ts'], { cwd: ROOT }).map(
  file => toldBy(readFileSync(ROOT + file, 'utf8')),
)

const isTold = (message: string) => {
  const pieces = message
    .split('…')
    .map(piece => piece.trim())
    .filter(piece => piece !== '')
  return sources.some(source => pieces.every(piece => source.includes(piece)))
}

describe('docs/troubleshooting.md', () => {
  const messages = [...readPage('docs/troubleshooting.md').matchAll(/^\| `([^`]+)` \|/gm)].map(([, text = '']) => text)

  it('quotes messages that exist in the sources', () => {
    expect(messages.filter(message => !isTold(message))).to.deep.equal([])
    expect(new Set(messages).size).to.equal(messages.length)
    expect(messages.length).to.be.above(10)
  })

  it('is rejected if a message does not exist', () => {
    expect(isTold('there is no toolset "…"; there were: …')).to.equal(false)
  })
})
