// Tests SECURITY.md, CHANGELOG.md and CONTRIBUTING.md against existing tests, the version and the scripts.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'

const ROOT = join(import.meta.dirname, '../..')
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')
const { version, scripts } = JSON.parse(read('package.json')) as { version: string; scripts: Record<string, string> }

/** The rows of the table below a heading, its own two left out, as cells. */
function rowsBelow(page: string, heading: string): string[][] {
  const [, part = ''] = page.split(`## ${heading}\n`)
  const lines = part.split('\n## ')[0]?.split('\n') ?? []
  const rows = lines.filter(line => line.startsWith('|')).slice(2)
  return rows.map(line => line.slice(1, -1).split('|'))
}

const pathsIn = (text: string) => [...text.matchAll(/`(test\/[^`]+)`/g)].map(([, path = '']) => path)

describe('Project pages', () => {
  it('SECURITY.md gives each threat a defence and existing tests', () => {
    const threats = rowsBelow(read('SECURITY.md'), 'Threats, defences, tests')
    const named = threats.map(([, defence = '', shown = '']) => ({ defence, paths: pathsIn(shown) }))
    expect(threats.length).to.be.above(15)
    for (const { defence, paths } of named) {
      expect(defence.trim()).to.not.equal('')
      expect(paths).to.not.have.lengthOf(0)
      expect(paths.filter(path => !existsSync(join(ROOT, path)))).to.deep.equal([])
    }
  })

  it('SECURITY.md lists the current version as supported', () => {
    const [major, minor] = version.split('.')
    const supported = rowsBelow(read('SECURITY.md'), 'Supported versions').map(([name = '', fixes = '']) => [
      name,
      fixes,
    ])
    expect(supported.map(row => row.map(cell => cell.trim()))).to.deep.include([`${major}.${minor}.x`, 'yes'])
  })

  it('CHANGELOG.md starts with Unreleased and the current version and uses Keep a Changelog headings', () => {
    const page = read('CHANGELOG.md')
    const versions = [...page.matchAll(/^## \[([^\]]+)\]/gm)].map(([, name]) => name)
    expect(versions.slice(0, 2)).to.deep.equal(['Unreleased', version])
    const kinds = [...page.matchAll(/^### (.*)$/gm)].map(([, kind = '']) => kind)
    expect(['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security']).to.include.members(kinds)
  })

  it('CONTRIBUTING.md names existing scripts and files', () => {
    const page = read('CONTRIBUTING.md')
    const run = [...page.matchAll(/npm run ([\w:-]+)/g)].map(([, name = '']) => name)
    expect(run).to.have.length.above(4)
    expect(Object.keys(scripts)).to.include.members(run)
    expect(pathsIn(page).filter(path => !existsSync(join(ROOT, path)))).to.deep.equal([])
  })

  it('the home page of the website shows the costs of the performance chart', () => {
    const [, costs = ''] =
      /^\| CPU time of a call in a session \(Koa = 1\) \|(.*)\|$/m.exec(read('site/index.md')) ?? []
    const [, session = ''] =
      /tools\/call in a session, [\d-]+: (.*?)\. /.exec(read('docs/pictures/performance.svg')) ?? []
    const drawn = ['mcp-host, 1 tool', 'SDK 1.32.2, sessions', 'fastmcp 4.20, sessions'].map(
      name => session.split(`${name} `)[1]?.split(',')[0],
    )
    expect(costs.split('|').map(cost => cost.trim())).to.deep.equal(drawn)
  })
})
