// Tests that log messages quoted in docs/logs.md exist in the source.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { ROOT } from '../support/doc-blocks.ts'

const sourceIn = (folder: string): string =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.ts'))
    .map(file => readFileSync(join(ROOT, folder, file), 'utf8'))
    .join('\n')

/** Texts that are put together from several lines are one; the page cannot quote a backtick. */
const source = ['core', 'plugins', 'remote', 'cli']
  .map(sourceIn)
  .join('\n')
  .replace(/['`] \+\s+['`]/g, '')
  .replace(/\\?`/g, '')

/** The first column of the table, with what is quoted there; `…` stands for anything. */
function quotedMessages(): string[] {
  const page = readFileSync(join(ROOT, 'docs/logs.md'), 'utf8')
  const [, table = ''] = page.split('| `msg` | Level | Action |\n|---|---|---|\n')
  const rows = table.slice(0, table.indexOf('\n\n')).split('\n')
  return rows.flatMap(row => [...(row.split(' | ')[0] ?? '').matchAll(/`([^`]+)`/g)].map(([, message = '']) => message))
}

describe('Log messages in docs/logs.md', () => {
  /** Without the mark before what is added to it. */
  const fixed = (part: string) => part.trim().replace(/[;:,]$/, '')

  it('exist in the source', () => {
    const messages = quotedMessages()
    expect(messages.length).to.be.greaterThan(20)
    const unknown = messages.filter(message => message.split('…').some(part => !source.includes(fixed(part))))
    expect(unknown).to.deep.equal([])
  })
})
