// `mcp-host check`: everything that `start` does before it listens.
import { createLogger, loadHost } from '../core/create-host.ts'
import { routeTable } from './start-page.ts'
import { CONFIG_OPTION, defineVerb } from './verb.ts'

async function check({ config, verbose = false }: { config?: string; verbose?: boolean }): Promise<void> {
  const log = createLogger({ verbose })
  const host = await loadHost({ cwd: process.cwd(), ...(config !== undefined && { file: config }) }, log)
  console.log(`${routeTable(host.routes)}\n\nThe config is fine.`)
  await host.close()
}

export const checkVerb = defineVerb({
  summary: 'load and check the config; serve nothing',
  options: CONFIG_OPTION,
  run: check,
})
