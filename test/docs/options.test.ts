// Tests the option tables of docs/, which are generated from config.schema.json.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { optionPages, optionsPage } from '../../build/write-options.ts'
import { ROOT } from '../support/doc-blocks.ts'

describe('Option tables', () => {
  const pages = optionPages()

  it('are as `npm run docs:options` writes them', () => {
    expect(pages.length).to.be.greaterThan(20)
    for (const path of pages) {
      const page = readFileSync(join(ROOT, path), 'utf8')
      expect(page, path).to.equal(optionsPage(page))
    }
  })

  it('have a description for each option', () => {
    const rows = pages.flatMap(path => optionsPage(readFileSync(join(ROOT, path), 'utf8')).split('\n'))
    expect(rows.filter(row => /^\|\[?`.*\|\|$/.test(row))).to.deep.equal([])
  })

  it('select, leave out, add and link options by the words of the comment', () => {
    const table = optionsPage(
      '<!-- options: HttpTls -key -passphrase -minVersion cert=#files -->\n\n| stale |\n\nText.\n',
    )
    expect(table.split('\n')).to.deep.equal([
      '<!-- options: HttpTls -key -passphrase -minVersion cert=#files -->',
      '',
      '|Option|Type|Default|Description|',
      '|---|---|---|---|',
      '|[`cert`](#files)|string|required|The certificate with its chain (fullchain.pem): PEM, or the path of a PEM file|',
      '|`handshakeTimeout`|duration|`10s`|Time limit of a handshake. A change requires a restart|',
      '',
      'Text.',
      '',
    ])
    expect(optionsPage('<!-- options: audit sync +rotate.size -->\n')).to.match(
      /\|`sync`\|.*\n\|`rotate\.size`\|size\|`100mb`\|/,
    )
  })

  it('are refused for unknown objects and options', () => {
    expect(() => optionsPage('<!-- options: nothing -->\n')).to.throw('config.schema.json has no object nothing')
    expect(() => optionsPage('<!-- options: HttpTls certs -->\n')).to.throw('config.schema.json has no option certs')
  })
})
