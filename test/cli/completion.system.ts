// Tests the completion scripts in the shells that are installed. bash is always there.
import { execFileSync, spawnSync } from 'node:child_process'
import { expect } from 'chai'
import { runCli, stopAll } from './in-process.ts'

const COMPLETE = {
  bash: 'COMP_CWORD=$(( $# - 1 )); COMP_WORDS=("$@"); _mcp_host; echo $COMPREPLY',
  fish: 'complete -C "$argv"',
} as const

const isInstalled = (shell: string) => spawnSync(shell, ['-c', 'exit 0']).status === 0

async function scriptFor(shell: string): Promise<string> {
  const { code, stdout } = await runCli(['completion', shell], process.cwd())
  expect(code).to.equal(0)
  return stdout
}

describe('mcp-host completion', () => {
  after(stopAll)

  for (const shell of ['bash', 'fish'] as const) {
    it(`completes commands and options in ${shell}`, async function () {
      if (shell !== 'bash' && !isInstalled(shell)) this.skip()
      const script = await scriptFor(shell)
      const complete = (...words: string[]) => {
        const args =
          shell === 'bash' ? ['-c', `${script}\n${COMPLETE.bash}`, 'bash'] : ['-c', `${script}\n${COMPLETE.fish}`]
        const found = execFileSync(shell, [...args, ...words], { encoding: 'utf8' })
        return found.split('\n').flatMap(line => line.split('\t')[0] || [])
      }
      expect(complete('mcp-host', 'conn')).to.deep.equal(['connect'])
      expect(complete('mcp-host', 'connect', '--wr')).to.deep.equal(['--write'])
    })
  }

  it('is valid for zsh', async function () {
    const script = await scriptFor('zsh')
    expect(script).to.match(/^#compdef mcp-host\n/)
    if (!isInstalled('zsh')) this.skip()
    expect(spawnSync('zsh', ['-n'], { input: script, encoding: 'utf8' })).to.include({ status: 0, stderr: '' })
  })

  it('suggests a shell', async () => {
    expect(await runCli(['completion', 'bahs'], process.cwd())).to.include({ code: 2 })
  })
})
