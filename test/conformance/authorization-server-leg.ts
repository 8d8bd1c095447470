// The authorization server leg: the suite, as a client, against a host with auth-bridge in front of an identity provider of
// the tests. The suite prints an authorization URL and waits for a person: here a browser that allows the client.
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type StartedBridge, startBridge } from '../support/bridge.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { stopIdentityProviders } from '../support/identity-provider.ts'
import { stopHosts } from '../support/start-host.ts'
import { readResults, type ScenarioResult } from './report.ts'
import { runToEnd, type Suite } from './suite.ts'

const SCENARIOS = ['authorization-server-metadata-endpoint', 'authorization-code-grant']
/** Milliseconds for the whole leg, and for the suite to ask for its person. */
const LIMIT = 120_000
const ASK_LIMIT = 30_000

/** The person: waits for the address that the suite prints, signs in, allows, and is sent back to the suite. */
async function allowWhatIsPrinted(bridge: StartedBridge, log: string): Promise<void> {
  const printed = /^https?:\/\/\S+[?&]code_challenge=\S+$/m
  const look = () => printed.exec(readFileSync(log, { encoding: 'utf8', flag: 'a+' }))?.[0] ?? ''
  const address = await eventually('an authorization URL in the log of the suite', look, Boolean, ASK_LIMIT)
  const browser = bridge.browser()
  const next = await browser.click(await browser.page(address), { decision: 'allow' })
  if ('html' in next) throw new Error(`the person got no further than ${next.url}: ${next.status} ${next.html}`)
  await fetch(next.redirect)
}

/** Runs the suite once; `named`: whether its requests name the resource. */
async function runOnce(suite: Suite, folder: string, bridge: StartedBridge, named: boolean): Promise<ScenarioResult[]> {
  const results = join(folder, named ? 'with-resource' : 'without-resource')
  mkdirSync(results, { recursive: true })
  const log = join(results, 'suite.log')
  const port = await freePort()
  const redirects = [`http://127.0.0.1:${port}/callback`]
  const { clientId } = await bridge.client({ client_name: 'conformance suite', redirect_uris: redirects })
  const client = ['--client-id', clientId, '--port', String(port)]
  const resource = named ? ['--resource', bridge.resource] : []
  const args = [suite.entry, 'authorization', '--url', bridge.issuer, ...client, ...resource, '--output-dir', results]
  const ended = runToEnd(suite.node, args, log, LIMIT)
  // Where the suite ends without asking anybody its results say why.
  await Promise.race([ended, allowWhatIsPrinted(bridge, log).then(() => ended)])
  const found = readResults(results, 'authorization-server-')
  const how = named ? '' : ' without a resource'
  return SCENARIOS.map(scenario => ({ scenario: `${scenario}${how}`, checks: found.get(scenario) }))
}

/** Both scenarios, with clients that name the resource and with those that do not. */
export async function runAuthorizationServerLeg(suite: Suite, folder: string): Promise<ScenarioResult[]> {
  const bridge = await startBridge()
  try {
    return [...(await runOnce(suite, folder, bridge, true)), ...(await runOnce(suite, folder, bridge, false))]
  } finally {
    await stopHosts()
    await stopIdentityProviders()
  }
}
