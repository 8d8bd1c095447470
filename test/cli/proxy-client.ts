// A proxy in this process, and a raw client at its stdin and stdout.

import type { Relay } from '../../cli/proxy/relay.ts'
import type { ProxyValues } from '../../cli/proxy.ts'
import { type ProxyEnds, startProxy } from '../../cli/proxy.ts'
import { TIMING, type Timing } from '../../remote/http/link.ts'
import { makeFolder } from '../config/folder.ts'
import { clientOf, type StdioClient } from '../plugins/transport-stdio/stdio-client.ts'
import { type TestContext, testContext } from './run-command.ts'

/** Nobody waits long for a server that is not there. */
export const QUICK: Timing = { ...TIMING, retryTimeout: 400, initialDelay: 20, maxDelay: 200, resumeTimeout: 3_000 }

export interface ProxyClient extends StdioClient<undefined> {
  readonly relay: Relay
  /** With what the relay printed to stderr. */
  readonly context: TestContext
}

const relays: Relay[] = []

/** For `after`. */
export async function endRelays(): Promise<void> {
  for (const relay of relays) relay.end()
  await Promise.all(relays.splice(0).map(({ ended }) => ended))
}

export async function openProxy(
  url: string,
  values: ProxyValues = {},
  timing: Timing = QUICK,
  env: NodeJS.ProcessEnv = {},
): Promise<ProxyClient> {
  let ends: ProxyEnds | undefined
  const client = clientOf(given => {
    ends = given
    return undefined
  })
  // Without the logins of the person who runs the tests.
  const context = testContext({ env: { MCP_HOST_HOME: await makeFolder({}), ...env } })
  const relay = await startProxy(context, url, values, ends as ProxyEnds, timing)
  relays.push(relay)
  return { ...client, relay, context }
}
