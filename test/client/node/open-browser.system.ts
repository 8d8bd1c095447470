// Tests opening the browser: command selection, no shell, and errors.
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { browserCommands, openBrowser } from '../../../client/node/open-browser.ts'
import { failure } from '../support/failure.ts'
import { makeTemporaryDirectory, removeTemporaryDirectories } from './support/temporary-directory.ts'

const SCREEN = ['BROWSER', 'DISPLAY', 'WAYLAND_DISPLAY', 'WSL_DISTRO_NAME'] as const
const saved = Object.fromEntries(SCREEN.map(name => [name, process.env[name]]))

function restore(): void {
  for (const name of SCREEN) {
    if (saved[name] === undefined) delete process.env[name]
    else process.env[name] = saved[name]
  }
}
beforeEach(() => {
  for (const name of SCREEN) delete process.env[name]
})
afterEach(restore)
after(removeTemporaryDirectories)

/** A "browser" that writes down its arguments, one a line. */
function makeBrowser(exitCode = 0): { command: string; arguments(): string[] } {
  const directory = makeTemporaryDirectory()
  const command = join(directory, 'browser')
  const log = join(directory, 'log')
  writeFileSync(command, `#!/bin/sh\nprintf '%s\\n' "$@" > '${log}'\nexit ${exitCode}\n`)
  chmodSync(command, 0o755)
  return { command, arguments: () => readFileSync(log, 'utf8').trimEnd().split('\n') }
}

const hostile = () => new URL(`https://login.example/a?x=$(touch\`pwd\`)&y=;reboot|%20'"&z=%s#it`)

describe('Opening the browser', () => {
  before(function () {
    if (process.platform === 'win32') this.skip()
  })

  it('R-61: passes the URL to BROWSER as one argument without a shell', async () => {
    const browser = makeBrowser()
    process.env['BROWSER'] = browser.command
    await openBrowser(hostile())
    expect(browser.arguments()).to.deep.equal([hostile().href])
    process.env['BROWSER'] = `${browser.command} --new-window --app=%s last`
    await openBrowser(hostile())
    expect(browser.arguments()).to.deep.equal(['--new-window', `--app=${hostile().href}`, 'last'])
  })

  it('tries each command in BROWSER until one works', async () => {
    const [failing, working, unused] = [makeBrowser(3), makeBrowser(), makeBrowser()]
    process.env['BROWSER'] = ['/does/not/exist', failing.command, working.command, unused.command].join(':')
    await openBrowser(new URL('https://login.example/'))
    expect(failing.arguments()).to.deep.equal(['https://login.example/'])
    expect(working.arguments()).to.deep.equal(['https://login.example/'])
    expect(() => unused.arguments()).to.throw('ENOENT')
  })

  it('reports a missing browser', async () => {
    process.env['BROWSER'] = '/does/not/exist'
    const error = await failure(openBrowser(new URL('https://login.example/')))
    expect(error.code).to.equal('interaction_required')
    expect(error.message).to.include('/does/not/exist').and.include('set BROWSER')
    delete process.env['BROWSER']
    if (process.platform !== 'linux') return
    const screenless = await failure(openBrowser(new URL('https://login.example/')))
    expect(screenless.message).to.match(/no (screen|display)/)
  })

  it('opens only http and https URLs', async () => {
    const browser = makeBrowser()
    process.env['BROWSER'] = browser.command
    for (const url of ['file:///etc/passwd', 'javascript:alert(1)', 'data:text/html,x', 'ms-settings:x']) {
      expect((await failure(openBrowser(new URL(url)))).code, url).to.equal('invalid_options')
    }
    expect(() => browser.arguments()).to.throw('ENOENT')
    await openBrowser(new URL('http://localhost/'))
    expect(browser.arguments()).to.deep.equal(['http://localhost/'])
  })

  it('selects the command of each operating system', () => {
    expect(browserCommands({}, 'darwin')).to.deep.equal([['open']])
    expect(browserCommands({}, 'win32')).to.deep.equal([['rundll32', 'url.dll,FileProtocolHandler']])
    expect(browserCommands({ BROWSER: 'C:\\x.exe' }, 'win32')).to.deep.equal([['C:\\x.exe']])
    expect(browserCommands({ DISPLAY: ':0' }, 'linux')).to.deep.equal([['xdg-open']])
    expect(browserCommands({ WAYLAND_DISPLAY: 'w' }, 'linux')).to.deep.equal([['xdg-open']])
    expect(browserCommands({ WSL_DISTRO_NAME: 'D' }, 'linux')).to.deep.equal([['wslview'], ['xdg-open']])
    expect(browserCommands({}, 'linux')).to.deep.equal([])
    expect(browserCommands({ BROWSER: ':  : a  b' }, 'linux')).to.deep.equal([['a', 'b']])
  })
})
