// Tests that docs/plugins/README.md lists every built-in plugin and links to its page.
import { existsSync } from 'node:fs'
import { expect } from 'chai'
import { builtInPlugins } from '../../plugins/index.ts'
import { PAGES, ROOT, readPage } from '../support/doc-blocks.ts'

describe('docs/plugins/README.md', () => {
  const names = Object.keys(builtInPlugins).sort()

  it('lists exactly the built-in plugins', () => {
    const listed = [...readPage('docs/plugins/README.md').matchAll(/^- \[([\w-]+)\]\(\1\.md\): .+$/gm)]
    expect(listed.map(([, name]) => name).sort()).to.deep.equal(names)
  })

  it('links each plugin to a page with a config example', () => {
    for (const name of names) {
      const page = `docs/plugins/${name}.md`
      expect(existsSync(ROOT + page), page).to.equal(true)
      expect(readPage(page), page).to.match(/<!-- in: (config|plugins) -->\n```(ts|yaml)/)
    }
    const pages = PAGES.filter(page => page.startsWith('docs/plugins/') && !page.endsWith('README.md'))
    expect(pages).to.deep.equal(names.map(name => `docs/plugins/${name}.md`))
  })
})
