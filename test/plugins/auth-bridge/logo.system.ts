// Tests that the logo type is detected from its content, and that no SVG script runs.
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { StartError } from '../../../core/plugin.ts'
import { createPages, readLogo } from '../../../plugins/auth-bridge/pages/index.ts'
import { makeTemporaryDirectory, removeTemporaryDirectories } from '../../client/node/support/temporary-directory.ts'
import { closePages, launchBrowser, watchFaults } from '../../support/browser.ts'
import { LOGO, SETTINGS, SIGN_IN } from './page-examples.ts'
import { listen, startPageServer, stopServers } from './page-server.ts'

after(removeTemporaryDirectories)
after(closePages)
after(stopServers)

let directory: string
before(() => {
  directory = makeTemporaryDirectory()
})

const bytes = (...parts: Array<readonly number[] | string>) =>
  Buffer.concat(parts.map(part => Buffer.from(part as string)))
const PNG = bytes([0x89], 'PNG\r\n\x1a\n', 'rest')
const SVG = '<svg xmlns="http://www.w3.org/2000/svg"></svg>'

function read(data: Buffer | string, name = 'logo.svg') {
  writeFileSync(join(directory, name), data)
  return readLogo(name, directory)
}

describe('auth-bridge pages: logo', () => {
  for (const [name, type] of [
    ['logo.png', 'image/png'],
    ['logo.JPG', 'image/jpeg'],
    ['logo.jpeg', 'image/jpeg'],
    ['logo.webp', 'image/webp'],
    ['logo.svg', 'image/svg+xml'],
  ] as const) {
    it(`has the type ${type} as ${name}`, () => expect(read(PNG, name)).to.deep.equal({ type, data: PNG }))
  }

  it('is rejected as another kind of file', () => {
    for (const name of ['logo.html', 'logo.gif', 'logo'])
      expect(() => read(SVG, name)).to.throw(
        StartError,
        `the logo "${name}" is not a .svg, .png, .jpg, .jpeg or .webp file`,
      )
  })

  it('is rejected if larger than 256 kB, missing, a directory or a pipe', () => {
    expect(() => read(Buffer.concat([PNG, Buffer.alloc(256 * 1024)]))).to.throw(StartError, 'at most 262144 (256 kB)')
    expect(() => readLogo('none.svg', directory)).to.throw(StartError, 'the logo "none.svg" cannot be read (ENOENT)')
    mkdirSync(join(directory, 'folder.svg'))
    expect(() => readLogo('folder.svg', directory)).to.throw(StartError, 'is not a file')
    execFileSync('mkfifo', [join(directory, 'pipe.svg')])
    expect(() => readLogo('pipe.svg', directory)).to.throw(StartError, 'is not a file')
  })
})

describe('auth-bridge pages: logo in chromium', () => {
  it('is shown, and an SVG neither runs scripts nor loads resources', async function () {
    const browser = await launchBrowser(this)
    const asked: string[] = []
    const elsewhere = await listen(({ url = '' }, response) => {
      asked.push(url)
      response.end()
    })
    const evil = LOGO.toString()
      .replace('<svg ', `<svg onload="fetch('${elsewhere}/onload')" `)
      .replace(
        '</svg>',
        `<script>new Image().src='${elsewhere}/script'</script><image href="${elsewhere}/image" width="9" height="9"/>
        <style>@import '${elsewhere}/style';</style><foreignObject width="9" height="9"><iframe xmlns="http://www.w3.org/1999/xhtml"
        src="${elsewhere}/frame"></iframe></foreignObject></svg>`,
      )
    const server = await startPageServer()
    const tab = await browser.newPage()
    const faults = watchFaults(tab)
    await tab.goto(server.show(createPages({ ...SETTINGS, logo: read(evil) }).signIn(SIGN_IN)), {
      waitUntil: 'networkidle',
    })
    expect(await tab.evaluate('document.images[0].naturalWidth > 0')).to.equal(true)
    expect(asked).to.deep.equal([])
    expect(server.stray).to.deep.equal([])
    expect(faults).to.deep.equal([])
  })
})
