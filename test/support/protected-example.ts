// The protected example. Its authorization server has its own URL, on a port chosen beforehand.
import { join } from 'node:path'
import { loadHost } from '../../core/create-host.ts'
import type { Host } from '../../core/host.ts'
import { freePort } from './free-port.ts'
import { createTestLog } from './start-host.ts'

export async function startProtectedExample(): Promise<Host> {
  const before = process.env['PORT']
  process.env['PORT'] = String(await freePort())
  try {
    const file = join(import.meta.dirname, '../../examples/protected/mcp.config.ts')
    const host = await loadHost({ cwd: import.meta.dirname, file }, createTestLog())
    await host.listen()
    return host
  } finally {
    if (before === undefined) delete process.env['PORT']
    else process.env['PORT'] = before
  }
}
