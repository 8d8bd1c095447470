// `mcp-host top` at a terminal.
import { expect } from 'chai'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { needsTerminals, startInTerminal } from '../in-terminal.ts'
import { stopAll } from '../run-cli.ts'
import { startFakePage } from './fake-metrics.ts'

after(removeFolders)
after(stopAll)

describe('mcp-host top at a terminal', () => {
  before(function () {
    needsTerminals(this)
  })

  it('draws, and leaves with q as the shell was', async () => {
    const page = await startFakePage()
    page.figures.call('say', 0.05, 3)
    const { child, printed, ended } = startInTerminal(['top', page.url], await makeFolder({}))
    await printed(/say +\/mcp/)
    child.stdin.write('q')
    const { code, stdout } = await ended
    await page.close()
    expect(code).to.equal(0)
    expect(stdout.indexOf('\x1b[?1049h')).to.be.at.least(0)
    expect(stdout.trimEnd().endsWith('\x1b[?7h\x1b[?25h\x1b[?1049l')).to.equal(true)
  })
})
