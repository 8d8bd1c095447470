// Tests hints in error messages: available routes and categories, limited to open routes and a readable length.
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { formatHint } from '../../core/kernel/write-errors.ts'
import { MODERN_REVISION } from '../../core/transport.ts'
import { legacy } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { startIssuer, stopIssuers } from '../support/test-issuer.ts'

after(stopHosts)
after(stopIssuers)

const toolset = (name: string) => [defineTool({ name, handler: () => name })]

let url: string
before(async () => {
  const { url: authority } = await startIssuer()
  ;({ url } = await startHost({
    toolsets: { clock: toolset('now'), stock: toolset('find'), admin: toolset('purge') },
    routes: {
      '/open': { toolsets: 'clock' },
      '/t/:category': { toolsets: { param: 'category', of: ['clock', 'stock', 'admin'] } },
      '/admin': { toolsets: 'admin', authorize: true },
      '/a/:category': { toolsets: ':category', authorize: true },
    },
    plugins: {
      'transport-streamable': {},
      'auth-jwt': { authority },
      'resource-metadata': { authorizationServers: [authority] },
    },
  }))
})

async function messageAt(path: string, headers: Record<string, string> = {}): Promise<string> {
  const { error } = (await (await fetch(`${url}${path}`, { headers })).json()) as { error: { message: string } }
  return error.message
}

describe('hints in error messages', () => {
  it('404 lists the open routes', async () => {
    expect(await messageAt('/opne')).to.match(/\/t\/:category$/)
  })

  it('404 for an unknown category lists the categories of an open route', async () => {
    expect(await messageAt('/t/clok')).to.equal(
      'Not found: nothing is served at this path; available at /t/:category: clock, stock, admin',
    )
  })

  it('404 reveals nothing of a guarded route', async () => {
    expect(await messageAt('/a/clok')).to.equal('Not found: nothing is served at this path')
  })

  it('truncates a long list and omits an empty one', () => {
    const many = Array.from({ length: 300 }, (_, index) => `/${index}${'x'.repeat(100)}`)
    expect(formatHint('open routes', many).length).to.be.lessThan(600)
    expect(formatHint('open routes', many)).to.match(/, …$/)
    expect(formatHint('open routes', [])).to.equal('')
  })

  it('a missing session id explains the three ways to connect', async () => {
    const { status, message } = await legacy(`${url}/open`, 'tools/list', {}, { revision: '2025-11-25' })
    expect([status, message.error.code]).to.deep.equal([400, -32000])
    expect(message.error.message).to.match(/Mcp-Session-Id/)
    expect(message.error.message).to.contain(MODERN_REVISION).and.to.contain('stateless: true')
    expect(await messageAt('/open', { Accept: 'text/event-stream' })).to.match(/Mcp-Session-Id/)
  })
})
