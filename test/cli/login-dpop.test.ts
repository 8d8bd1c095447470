// Tests the commands of docs/plugins/dev-auth-server.md: with DPoP-bound tokens only, `login` gets one, `list` and
// `call` send proofs, and `token` prints that it is no bearer token.
import { expect } from 'chai'
import { createHost } from '../../core/create-host.ts'
import config from '../../examples/protected/mcp.config.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { Browser, readClaims } from '../support/form-browser.ts'
import { freePort } from '../support/free-port.ts'
import { createTestLog } from '../support/start-host.ts'
import { startFakeBrowser, stopFakeBrowsers } from './fake-browser.ts'
import { runCli, stopAll } from './in-process.ts'

describe('client commands with tokens that are bound to a key', () => {
  after(async () => {
    await stopAll()
    await stopFakeBrowsers()
    await removeFolders()
  })

  it('log in, call, and print the type of the token', async () => {
    const port = await freePort()
    const url = `http://127.0.0.1:${port}/`
    const authority = `${url}dev-auth`
    const plugins = {
      ...config.plugins,
      'auth-jwt': { authority, dpop: { mode: 'required' as const } },
      'resource-metadata': { authorizationServers: [authority], scopesSupported: ['mcp.tools', 'mcp.admin'] },
    }
    const directory = new URL('../../examples/protected', import.meta.url).pathname
    const host = await createHost({ ...config, http: { port }, plugins }, { directory, log: createTestLog() })
    await host.listen()
    const browser = await startFakeBrowser(address => new Browser(address.origin).allow(address, 'ada'))
    const home = await makeFolder({})
    const run = (...args: string[]) =>
      runCli(args, home, { ...browser.env, MCP_HOST_HOME: home, MCP_HOST_TOKEN_KEY: '' }, { openBrowser: browser.open })
    try {
      const login = await run('login', url)
      expect(login.code, login.stderr).to.equal(0)
      const [called, token] = await Promise.all([run('call', url, 'current_time'), run('token', url)])
      expect(called.code, called.stderr).to.equal(0)
      expect(token.stderr).to.match(/^this token is bound to a key \(DPoP\), .*\n$/)
      expect(readClaims(token.stdout.trim())).to.have.property('cnf').that.has.all.keys('jkt')
      const headers = { Authorization: `Bearer ${token.stdout.trim()}` }
      expect((await fetch(url, { method: 'POST', headers, body: '{}' })).status).to.equal(401)
    } finally {
      await host.close({ grace: 0 })
    }
  })
})
