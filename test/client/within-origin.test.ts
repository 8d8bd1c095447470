// Redirects of requests with credentials: within the origin they are followed, elsewhere nothing arrives.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { createAuthFetch } from '../../client/index.ts'
import { withinOrigin } from '../../client/replay.ts'
import { failure } from './support/failure.ts'

interface Seen {
  readonly method: string | undefined
  readonly path: string | undefined
  readonly key: IncomingMessage['headers'][string]
  readonly type: IncomingMessage['headers'][string]
  readonly body: string
}

describe('withinOrigin', () => {
  const servers: Server[] = []
  let url: string
  let elsewhere: string
  let seen: Seen[] = []
  let foreign = 0
  /** Where `/from` redirects to. */
  let redirect: { readonly status: number; readonly location?: string } = { status: 307 }

  async function listen(answer: Parameters<typeof createServer>[1] & object): Promise<string> {
    const server = createServer(answer)
    servers.push(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  before(async () => {
    elsewhere = await listen((_, response) => {
      foreign++
      response.end('elsewhere')
    })
    url = await listen(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      const { method, url: path, headers } = request
      seen.push({ method, path, key: headers['x-api-key'], type: headers['content-type'], body })
      if (path !== '/from') return void response.end('there')
      response.writeHead(redirect.status, redirect.location === undefined ? {} : { location: redirect.location }).end()
    })
  })
  after(() => {
    for (const server of servers) {
      server.closeAllConnections()
      server.close()
    }
  })
  beforeEach(() => {
    seen = []
    foreign = 0
  })

  const guarded = withinOrigin(fetch)
  const headers = { 'X-Api-Key': 'k', 'Content-Type': 'application/json' }
  const init = { method: 'POST', headers, body: '{}' }

  it('follows redirects within the origin as fetch does, with headers and body where the method stays', async () => {
    for (const status of [301, 302, 303, 307, 308]) {
      for (const input of [`${url}/from`, new Request(`${url}/from`, init)]) {
        seen = []
        redirect = { status, location: '/to' }
        const response = await guarded(input, input instanceof Request ? undefined : init)
        expect(await response.text(), String(status)).to.equal('there')
        const kept = { method: 'POST', path: '/to', key: 'k', type: 'application/json', body: '{}' }
        const plain = { method: 'GET', path: '/to', key: 'k', type: undefined, body: '' }
        expect(seen[1], String(status)).to.deep.equal(status > 303 ? kept : plain)
      }
    }
  })

  it('sends nothing to another origin, and ends circles', async () => {
    for (const status of [301, 302, 303, 307, 308]) {
      redirect = { status, location: `${elsewhere}/to?secret=1` }
      const refused = await failure(guarded(`${url}/from`, init))
      expect(refused.code).to.equal('redirected')
      expect(refused.message).to.include(`redirects to ${elsewhere}/to, where`).and.not.include('secret=1')
    }
    redirect = { status: 307, location: '/from' }
    expect((await failure(guarded(`${url}/from`, init))).message).to.include('redirects in a circle')
    expect(foreign).to.equal(0)
  })

  it('leaves redirects to a caller who handles them, and answers without a location', async () => {
    redirect = { status: 307, location: elsewhere }
    expect((await guarded(`${url}/from`, { ...init, redirect: 'manual' })).status).to.equal(307)
    redirect = { status: 304 }
    expect((await guarded(`${url}/from`)).status).to.equal(304)
    redirect = { status: 307 }
    expect((await guarded(`${url}/from`)).status).to.equal(307)
  })

  it('is what createAuthFetch sends its requests with, those without a token, too', async () => {
    redirect = { status: 307, location: elsewhere }
    const authFetch = createAuthFetch({ serverUrl: `${url}/from`, interactive: 'never' })
    expect((await failure(authFetch(`${url}/from`, init))).code).to.equal('redirected')
    expect(foreign).to.equal(0)
  })
})
