// `mcp-host check`: everything that `start` does before it listens.
import { createLogger, loadHost } from '../core/create-host.ts'
import type { VerbOptions } from './main.ts'
import { routeTable } from './start-page.ts'

export async function check({ config, verbose }: VerbOptions): Promise<void> {
  const log = createLogger({ verbose })
  const host = await loadHost({ cwd: process.cwd(), ...(config !== undefined && { file: config }) }, log)
  console.log(`${routeTable(host.routes)}\n\nThe config is fine.`)
  await host.close()
}
