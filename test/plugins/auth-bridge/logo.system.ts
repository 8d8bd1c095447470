// Tests that the logo type is detected from its content, and that no SVG script runs.
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { StartError } from '../../../core/index.ts'
import { createPages, readLogo } from '../../../plugins/auth-bridge/pages/index.ts'
import { makeTemporaryDirectory, removeTemporaryDirectories } from '../../client/node/support/temporary-directory.ts'
import { closeBrowsers, launchBrowser, watchFaults } from '../../support/browser.ts'
import { LOGO, SETTINGS, SIGN_IN } from './page-examples.ts'
import { listen, startPageServer, stopServers } from './page-server.ts'

after(removeTemporaryDirectories)
after(closeBrowsers)
after(stopServers)

let directory: string
before(() => {
  directory = makeTemporaryDirectory()
})

const bytes = (...parts: Array<readonly number[] | string>) =>
  Buffer.concat(parts.map(part => Buffer.from(part as string)))
const PNG = bytes([0x89], 'PNG\r\n\x1a\n', 'rest')
const SVG = '<svg xmlns="http://www.w3.org/2000/svg"></svg>'

function read(data: Buffer | string, name = 'logo.bin') {
  writeFileSync(join(directory, name), data)
  return readLogo(name, directory)
}

describe('auth-bridge pages: logo', () => {
  for (const [what, type, data] of [
    ['a PNG', 'image/png', PNG],
    ['a JPEG', 'image/jpeg', bytes([0xff, 0xd8, 0xff, 0xe0], 'rest')],
    ['a WebP', 'image/webp', bytes('RIFF', [1, 2, 3, 4], 'WEBPVP8 ')],
    ['an SVG', 'image/svg+xml', bytes(SVG)],
    [
      'an SVG after all that XML allows',
      'image/svg+xml',
      bytes([0xef, 0xbb, 0xbf], `<?xml version="1.0"?>\n<!-- <html> -->\n<!DOCTYPE svg>\n${SVG}\n`),
    ],
    ['a PNG of 256 kB', 'image/png', Buffer.concat([PNG, Buffer.alloc(256 * 1024 - PNG.length)])],
  ] as const) {
    it(`is detected as ${what}, whatever the file name`, () => expect(read(data)).to.deep.equal({ type, data }))
  }

  for (const [what, data] of [
    ['empty', ''],
    ['HTML', '<!DOCTYPE html><html><svg></svg></html>'],
    ['HTML that begins with an SVG', `${SVG}<script>alert(1)</script>`],
    ['a GIF', 'GIF89a'],
    ['a PDF', '%PDF-1.7'],
    ['a sound in RIFF', bytes('RIFF', [1, 2, 3, 4], 'WAVEfmt ')],
    ['an SVG in UTF-16', Buffer.from(`\ufeff${SVG}`, 'utf16le')],
    ['an SVG in Latin 1', Buffer.from(SVG.replace('></', '>é</'), 'latin1')],
    ['a comment without an end', '<!-- <svg></svg>'],
    ['another element', '<svgx></svg>'],
  ] as const) {
    it(`is rejected: ${what}`, () => {
      expect(() => read(data)).to.throw(StartError, 'the logo "logo.bin" is no SVG, PNG, JPEG or WebP by its content')
    })
  }

  it('is rejected if larger than 256 kB, missing, a directory or a pipe', () => {
    expect(() => read(Buffer.concat([PNG, Buffer.alloc(256 * 1024)]))).to.throw(StartError, 'at most 262144 (256 kB)')
    expect(() => readLogo('none.svg', directory)).to.throw(StartError, 'the logo "none.svg" cannot be read (ENOENT)')
    mkdirSync(join(directory, 'folder'))
    expect(() => readLogo('folder', directory)).to.throw(StartError, 'is no file')
    execFileSync('mkfifo', [join(directory, 'pipe')])
    expect(() => readLogo('pipe', directory)).to.throw(StartError, 'is no file')
  })

  it('is checked in linear time for hostile files', () => {
    for (const part of ['<!--', '<?', '<!-- -->', '<!DOCTYPE>', ' ', '<svg'])
      expect(() => read(part.repeat(Math.floor((256 * 1024) / part.length)))).to.throw(StartError)
  }).timeout(5_000)
})

describe('auth-bridge pages: logo in chromium', function () {
  this.timeout(60_000)

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
