// A user with a protected server: CLI commands with their own home directory, a browser and fake servers. The output is
// kept for checks for secrets.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { authorize, type FakeServers, startFakeServers, stopServers } from '../client/support/fake-servers.ts'
import { expectNoSecret } from '../client/support/leaks.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { type FakeBrowser, startFakeBrowser, stopFakeBrowsers } from './fake-browser.ts'
import { type Ended, type Running, startCli, stopAll } from './in-process.ts'

/** One server and one person at one machine. */
export interface Desk {
  readonly fake: FakeServers
  readonly url: string
  readonly browser: FakeBrowser
  readonly home: string
  readonly env: NodeJS.ProcessEnv
  run(args: readonly string[], env?: NodeJS.ProcessEnv): Promise<Ended>
  start(args: readonly string[], env?: NodeJS.ProcessEnv, terminal?: boolean): Running
}

export const SECRET = 'the configured secret: of+a client/'

/** All that commands printed, for the look at secrets. */
const printed: string[] = []
const fakes: FakeServers[] = []

export async function startDesk(): Promise<Desk> {
  const fake = await startFakeServers()
  fakes.push(fake)
  const home = await makeFolder({})
  const browser = await startFakeBrowser(authorize)
  const env = { ...browser.env, MCP_HOST_HOME: home, MCP_HOST_CLIENT_SECRET: '', MCP_HOST_TOKEN_KEY: '' }
  const start: Desk['start'] = (args, more, terminal = false) => {
    const opens = more?.['BROWSER'] === undefined ? { openBrowser: browser.open } : {}
    const running = startCli(args, home, { ...env, ...more }, { ...opens, terminal })
    running.ended.then(({ stdout, stderr }) => printed.push(args[0] === 'token' ? stderr : `${stdout}${stderr}`))
    return running
  }
  return { fake, url: fake.serverUrl, browser, home, env, start, run: (args, more) => start(args, more).ended }
}

export const filesOf = (desk: Desk) => readdir(join(desk.home, 'tokens'))

/** The server takes the token that `mcp-host token` printed. */
export async function expectServes(desk: Desk, { stdout, stderr, code }: Ended) {
  expect([code, stderr]).to.deep.equal([0, ''])
  expect(stdout).to.match(/^\S+\n$/)
  const response = await fetch(desk.url, { method: 'POST', headers: { authorization: `Bearer ${stdout.trim()}` } })
  expect(response.status).to.equal(200)
}

/** Looks at every output of the commands of this file, but what `token` is for. Returns how many there were. */
export function expectNothingShown(): number {
  const secrets = [SECRET, ...fakes.flatMap(fake => fake.secrets())]
  expectNoSecret(printed, secrets)
  return printed.length
}

/** For `after`. */
export async function stopDesks(): Promise<void> {
  await stopAll()
  await stopFakeBrowsers()
  await stopServers()
  await removeFolders()
}
