// Starts a real host on a free port, and stops it after the test suite.

import { createHost } from '../../core/create-host.ts'
import type { CreateHostOptions, Host } from '../../core/host.ts'
import type { Config } from '../../core/index.ts'
import { createTestLog, type LoggedLine as LogLine } from '../../core/testing/test-log.ts'
import { withEyes } from './observability-plugins.ts'
import { withStore } from './test-store.ts'

export { createTestLog, type LogLine }

export interface StartedHost {
  readonly host: Host
  readonly url: string
  readonly log: LogLine[]
}

const started: Array<{ readonly host: Host; close(): Promise<void> | undefined }> = []

/** Defaults of every test config. */
const BASE = {
  server: { name: 'test-host', version: '1.2.3' },
  // Longer than a loaded machine stalls: a request on a connection that the host is closing fails.
  http: { port: 0, keepAliveTimeout: '30s' },
  secrets: ['a secret for tests, long enough to be one'],
  plugins: { 'transport-streamable': {} },
}

export type TestConfig = Partial<Config> & Pick<Config, 'toolsets' | 'routes'>

export type StartOptions = Pick<CreateHostOptions, 'neighbours' | 'processes' | 'clock' | 'log'>

export async function startHost(given: TestConfig, directory?: string, more: StartOptions = {}): Promise<StartedHost> {
  const config = withStore(given)
  const log = createTestLog()
  const eyes = await withEyes(config)
  const full = { ...BASE, ...(eyes?.config ?? config), http: { ...BASE.http, ...config.http } }
  const host = await createHost(full, { log, ...(directory !== undefined && { directory }), ...more })
  await host.listen()
  started.push({ host, close: () => eyes?.close(host.url, log.lines) })
  return { host, url: host.url, log: log.lines }
}

/** Closes every host that this file started: call it in `after`. */
export async function stopHosts(): Promise<void> {
  await Promise.all(
    started.splice(0).map(async ({ host, close }) => {
      await close()
      await host.close({ grace: 0 })
    }),
  )
}
