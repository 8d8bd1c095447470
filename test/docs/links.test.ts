// Tests that links of the docs lead to existing files and headings, in the repository, in the package and on the website.
import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { expect } from 'chai'
import { globSync } from 'tinyglobby'
import { anchorOf, COPIED, UNPUBLISHED } from '../../site/published.ts'
import { PAGES, ROOT, readPage } from '../support/doc-blocks.ts'

/** What npm packs: `files` of package.json, and what it always takes. */
const { files: packed } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { files: string[] }
const isPacked = (path: string) =>
  [...packed, 'package.json'].some(entry => path === entry || path.startsWith(`${entry}/`))

const there = new Set(globSync('**/*', { cwd: ROOT, dot: true, ignore: ['**/node_modules/**', '.git/**', 'dist/**'] }))
const isFolder = (path: string) => path === '' || [...there].some(file => file.startsWith(`${path}/`))

/** The pages of the website. */
const published = globSync('**/*.md', { cwd: ROOT, ignore: [...UNPUBLISHED, 'site/**'] }).sort()
const onSite = new Set([...published, ...globSync(COPIED, { cwd: ROOT, ignore: ['**/node_modules/**'] })])

const IMAGE = /\.(?:png|svg)$/

const proseOf = (text: string) => text.replaceAll(/^ *```[\s\S]*?^ *```/gm, '')

function anchorsIn(text: string): Set<string> {
  const anchors = new Set<string>()
  for (const [, heading = ''] of proseOf(text).matchAll(/^#{1,6} +(.*?) *$/gm)) {
    const words = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    const plain = anchorOf(words)
    let anchor = plain
    for (let again = 1; anchors.has(anchor); again++) anchor = `${plain}-${again}`
    anchors.add(anchor)
  }
  return anchors
}

function linksIn(text: string): string[] {
  const prose = proseOf(text).replaceAll(/`[^`\n]*`/g, '``')
  return [...prose.matchAll(/\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)/g)].map(([, target = '']) => target)
}

/** What is wrong with a link of a page; undefined: nothing. */
function faultOf(page: string, target: string): string | undefined {
  if (/^[a-z]+:/i.test(target)) return undefined
  const [path = '', anchor] = target.split('#')
  const to = path === '' ? page : posix.join(posix.dirname(page), decodeURI(path)).replace(/\/$/, '')
  if (!there.has(to) && !isFolder(to)) return 'there is no such file'
  if (isPacked(page) && !isPacked(to) && !isFolder(to)) return 'it is not in the package'
  if (!onSite.has(to) && !IMAGE.test(to)) return 'the website does not publish it'
  if (anchor === undefined) return undefined
  return anchorsIn(readPage(to)).has(anchor) ? undefined : 'there is no such heading'
}

describe('Links of the docs', () => {
  it('lead to existing files and headings, in the repository, in the package and on the website', () => {
    const links = published.flatMap(page => linksIn(readPage(page)).map(target => ({ page, target })))
    const faults = links.flatMap(({ page, target }) => {
      const fault = faultOf(page, target)
      return fault === undefined ? [] : [`${page}: ${target}: ${fault}`]
    })
    expect(faults).to.deep.equal([])
    expect(links.length).to.be.above(150)
  })

  it('reach every page', () => {
    const linked = PAGES.flatMap(page =>
      linksIn(readPage(page)).map(target =>
        posix.join(posix.dirname(page), target.split('#')[0] ?? '').replace(/\/$/, ''),
      ),
    )
    const reached = new Set(linked.flatMap(path => [path, `${path}/README.md`]))
    expect(PAGES.filter(page => page !== 'README.md' && !reached.has(page))).to.deep.equal([])
  })

  it('are distinguished from text that is no link', () => {
    expect(linksIn('a [b](c.md#d "e") `[f](g)` ![h](<i j.png>)\n```\n[k](l)\n```\n'))
      .to.include('c.md#d')
      .and.not.include('g')
    expect([...anchorsIn('# A `b`, c: d\n## A b c d\n### [x](y) & z\n')]).to.deep.equal([
      'a-b-c-d',
      'a-b-c-d-1',
      'x--z',
    ])
    expect(faultOf('README.md', 'docs/nowhere.md')).to.equal('there is no such file')
    expect(faultOf('README.md', 'docs/config.md#nowhere')).to.equal('there is no such heading')
    expect(faultOf('README.md', 'test/surface.test.ts')).to.equal('it is not in the package')
    expect(faultOf('README.md', 'templates/open/README.md')).to.equal('the website does not publish it')
  })
})
