// Bundled documents: environment isolation, caching, error reports and text escaping.
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { transform } from 'esbuild'
import type { Browser } from 'playwright-core'
import { htmlPage } from '../../../plugins/apps/bundle-page.ts'
import { type PageSettings, pageOf } from '../../../plugins/apps/page.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { closePages, launchBrowser } from '../../support/browser.ts'

const settings = (directory: string): PageSettings => ({ directory, minify: true, maxBytes: 1_024 ** 2 })
const MODULE = { name: 'a', module: './a.ts' }

after(removeFolders)

describe('Bundled app document', () => {
  it('contains nothing from the environment', async () => {
    process.env['MCP_HOST_PLANTED'] = 'planted-secret'
    try {
      const names = ['MCP_HOST_PLANTED', 'PATH', 'HOME', 'NODE_ENV']
      const read = names.map(name => `process.env.${name}, import.meta.env?.${name}`).join(', ')
      const folder = await makeFolder({
        'a.ts': `console.log(${read}, process.env)`,
        '.env': 'FROM_FILE=planted-secret',
      })
      const { html } = await pageOf(MODULE, settings(folder))
      expect(html).to.contain('process.env.MCP_HOST_PLANTED').and.to.contain('"production"')
      for (const secret of ['planted-secret', process.env['PATH'], process.env['HOME']]) {
        expect(html).not.to.contain(`${secret}`)
      }
      expect(html).not.to.contain(folder)
    } finally {
      delete process.env['MCP_HOST_PLANTED']
    }
  })

  it('is cached while its files are unchanged and rebuilt after a change', async () => {
    const folder = await makeFolder({
      'a.ts': "import { b } from './b.ts'\ndocument.title = b",
      'b.ts': "export const b = '1'",
    })
    const first = await pageOf(MODULE, settings(folder))
    expect(await pageOf({ module: './a.ts', name: 'a' }, settings(folder))).to.equal(first)
    await writeFile(join(folder, 'b.ts'), "export const b = '2'")
    const second = await pageOf(MODULE, settings(folder))
    expect(second.html).to.contain('"2"')
    expect(await pageOf(MODULE, { ...settings(folder), minify: false })).not.to.equal(second)
    await rm(join(folder, 'b.ts'))
    const [gone] = await Promise.allSettled([pageOf(MODULE, settings(folder))])
    expect(gone).to.have.property('status', 'rejected')
  })

  it('reports the largest parts of a too large document and the first of many errors', async () => {
    const folder = await makeFolder({
      'a.ts': "import { large } from './large.ts'\nimport './small.css'\ndocument.title = large",
      'large.ts': `export const large = '${'x'.repeat(4_000)}'`,
      'small.css': 'body { color: red }',
      'wrong.ts': Array.from({ length: 9 }, (_, index) => `import './none-${index}.ts'`).join('\n'),
    })
    const refused = async (module: string, maxBytes: number) => {
      const [outcome] = await Promise.allSettled([pageOf({ name: 'a', module }, { ...settings(folder), maxBytes })])
      return outcome.status === 'rejected' ? String(outcome.reason.message) : ''
    }
    expect(await refused('./a.ts', 2_048)).to.match(
      /5 kB, more than the 2 kB .* the largest parts are large\.ts \(4 kB\), /,
    )
    const lines = (await refused('./wrong.ts', 2_048)).split('\n')
    expect(lines).to.have.lengthOf(7)
    expect(lines[1]).to.equal('wrong.ts:1:8: Could not resolve "./none-0.ts"')
    expect(lines[6]).to.equal('and 4 more')
  })
})

describe('Bundled app document in Chromium', () => {
  let browser: Browser
  before(async function () {
    browser = await launchBrowser(this)
  })
  after(closePages)

  const PIECES = [
    '</script>',
    '</SCRIPT\t',
    '<script>',
    '<script/',
    '<!--',
    '-->',
    '--!>',
    '</style>',
    '</title>',
    '\\',
    '<',
    "'",
    '&lt;',
    '<![CDATA[',
  ]

  /** Each piece before four others, and within a script of a comment. */
  const texts = PIECES.flatMap(one =>
    ['</script>', '<!--', '<script>', '</style>'].map(other => `${one}${other} <!--<script>`),
  ).concat(PIECES.map(piece => `<!-- <script> ${piece} </script> <!--<script >${piece}`))

  /** As a string, a template, its raw text, a regular expression, a key, and in comments. */
  function moduleOf(text: string): string {
    const template = text.replace(/[\\`$]/g, '\\$&')
    const pattern = text.replace(/[\\/$.*+?^()[\]{}|]/g, '\\$&')
    const string = JSON.stringify(text)
    const raw = text.replace(/[\\`$]/g, '')
    return `//! ${text}
      const raw = String.raw\`${raw}\`
      const values = [${string}, \`${template}\`, raw, Object.keys({ ${string}: 1 })[0], /${pattern}/.test(${string}), /[</script>]/u.test('x')]
      let s = 1, script = 2
      /*! ${text.replaceAll('*/', '')} */
      window.values = [...values, s < --script, s </script/.exec('script').index + 2]`
  }

  it('runs unchanged with HTML and script delimiters in its texts', async () => {
    const tab = await browser.newPage()
    let count = 0
    for (const text of texts) {
      const minify = count % 2 === 0
      const options = { minify, format: 'esm', platform: 'browser', loader: 'ts', legalComments: 'eof' } as const
      const { code } = await transform(moduleOf(text), options)
      // A custom property is left as it is by the bundler.
      const css = `main::before{content:${JSON.stringify(text).replace(/\\t/g, ' ')};--own: </style>}`
      const { code: style } = await transform(css, { loader: 'css', minify })
      await tab.setContent(htmlPage(text, { script: code, style }))
      const found = await tab.evaluate<unknown>(`[window.values, document.title, document.body.children.length,
          document.querySelectorAll('script, style').length, document.body.innerText]`)
      const raw = text.replace(/[\\`$]/g, '')
      const title = text.replace(/\s+/g, ' ').trim()
      const values = [text, text, raw, text, true, false, false, true]
      expect(found, text).to.deep.equal([values, title, 2, 2, ''])
      count++
    }
  })
})
