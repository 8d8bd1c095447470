// Tests that examples/skills starts unchanged and serves skills and tools.
import { join } from 'node:path'
import { expect } from 'chai'
import { loadHost } from '../../core/create-host.ts'
import type { Host } from '../../core/host.ts'
import { modern, type RpcMessage } from '../support/rpc.ts'
import { createTestLog } from '../support/start-host.ts'

describe('examples/skills', () => {
  const folder = join(import.meta.dirname, '../../examples/skills')
  let host: Host | undefined
  before(async () => {
    process.env['PORT'] = '0'
    host = await loadHost({ cwd: folder, file: join(folder, 'mcp.config.ts') }, createTestLog())
    await host.listen()
  })
  after(async () => {
    delete process.env['PORT']
    await host?.close({ grace: 0 })
  })

  it('serves two skills and the clock tools', async () => {
    const { skills } = (await modern(`${host?.url}/mcp`, 'skills/list')).message.result
    expect(skills.map(({ frontmatter }: RpcMessage) => frontmatter.name)).to.deep.equal(['refunds', 'release-notes'])
    expect((await modern(`${host?.url}/mcp`, 'tools/list')).message.result.tools).to.have.lengthOf(3)
  })
})
