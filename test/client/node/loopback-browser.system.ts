// Tests a login with a real browser and the loopback redirect.
import { execFile } from 'node:child_process'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { createLoopbackRedirect } from '../../../client/node/index.ts'
import type { LoopbackRedirectOptions } from '../../../client/node/loopback.ts'
import { needsProgram } from '../../support/needs-program.ts'
import { makeTemporaryDirectory, removeTemporaryDirectories } from './support/temporary-directory.ts'

let server: Server
before(done => {
  // As an authorization server at its end: back to the redirect URI, with the state.
  server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://login.example')
    const back = new URL(searchParams.get('redirect_uri') ?? '')
    const denied = searchParams.get('state') === 'denied'
    for (const [name, value] of Object.entries(denied ? { error: 'access_denied' } : { code: 'the-code' })) {
      back.searchParams.set(name, value)
    }
    back.searchParams.set('state', searchParams.get('state') ?? '')
    response.writeHead(302, { location: back.href }).end()
  }).listen(0, '127.0.0.1', done)
})
after(done => {
  removeTemporaryDirectories()
  server.close(done)
  server.closeAllConnections()
})

async function browse(url: URL): Promise<string> {
  const profile = `--user-data-dir=${makeTemporaryDirectory()}`
  const args = [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-dev-shm-usage',
    profile,
    '--dump-dom',
    url.href,
  ]
  const { stdout } = await promisify(execFile)('chromium', args)
  return stdout
}

async function logIn(state: string, options: LoopbackRedirectOptions = {}) {
  let shown: Promise<string> = Promise.resolve('')
  const redirect = await createLoopbackRedirect({
    ...options,
    openBrowser(url) {
      shown = browse(url)
    },
  })
  const authorizationUrl = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/authorize`)
  authorizationUrl.searchParams.set('redirect_uri', redirect.redirectUri)
  authorizationUrl.searchParams.set('state', state)
  const { signal } = new AbortController()
  const callback = await redirect.delegate(authorizationUrl, redirect.redirectUri, { signal })
  return { callback, redirect, page: await shown }
}

describe('Login in chromium', () => {
  before(function () {
    needsProgram(this, 'chromium', 'apt-get install chromium')
  })

  it('R-61: completes at the loopback redirect, by name too, and shows a success page', async () => {
    const { callback, redirect, page } = await logIn('a-state', { host: 'localhost' })
    expect(callback.href).to.equal(`${redirect.redirectUri}?code=the-code&state=a-state`)
    expect(page).to.include('<h1>Response received</h1>')
  })

  it('R-61: shows an error page after a denied login', async () => {
    const { callback, page } = await logIn('denied')
    expect(callback.searchParams.get('error')).to.equal('access_denied')
    expect(page).to.include('<h1>You are not logged in</h1>')
  })
})
