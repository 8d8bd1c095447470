import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { expect } from 'chai'
import { startProtected } from '../../support/protected-host.ts'
import { stopHosts } from '../../support/start-host.ts'
import { startIssuer, stopIssuers } from '../../support/test-issuer.ts'

after(async () => {
  await stopHosts()
  await stopIssuers()
})

const BODY = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    name: 'whoami',
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
})
const HEADERS = {
  'Content-Type': 'application/json',
  Accept: 'application/json, text/event-stream',
  'MCP-Protocol-Version': '2026-07-28',
  'Mcp-Method': 'tools/call',
  'Mcp-Name': 'whoami',
}

describe('auth-jwt: connection shared by callers (proxy keep-alive)', () => {
  it('authenticates each request by its own token', async () => {
    const issuer = await startIssuer()
    const host = await startProtected({ 'auth-jwt': { authority: issuer.url } })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const ports = new Set<number | undefined>()

    async function ask(url: string, authorization: string | undefined) {
      const headers = { ...HEADERS, ...(authorization !== undefined && { Authorization: authorization }) }
      const asking = request(url, { method: 'POST', agent, headers })
      asking.end(BODY)
      const [answer] = (await once(asking, 'response')) as [IncomingMessage]
      ports.add(answer.socket.localPort)
      const text = Buffer.concat(await answer.toArray()).toString()
      return answer.statusCode === 200 ? JSON.parse(text).result.structuredContent.user?.subject : answer.statusCode
    }

    const bearer = (path: string, changes: object) => `Bearer ${issuer.token(path, { ...changes })}`
    const { guarded, open } = host
    const [ann, bob] = [bearer(guarded, { sub: 'ann' }), bearer(guarded, { sub: 'bob' })]
    const late = bearer(guarded, { sub: 'late', exp: 1 })
    const rounds: unknown[] = []
    for (let round = 0; round < 5; round++) {
      const asked = [
        ann,
        ann,
        bob,
        ann,
        undefined,
        ann,
        late,
        bob,
        bob,
        `${ann}x`,
        ann,
        `${ann}, ${bob}`,
        'Basic YTpi',
        bob,
      ]
      for (const authorization of asked) rounds.push(await ask(guarded, authorization))
      // The token is for the guarded route alone, though the connection showed it there just now.
      rounds.push(await ask(guarded, ann), await ask(open, ann), await ask(open, undefined), await ask(guarded, ann))
    }
    agent.destroy()
    const aRound = [
      'ann',
      'ann',
      'bob',
      'ann',
      401,
      'ann',
      401,
      'bob',
      'bob',
      401,
      'ann',
      400,
      401,
      'bob',
      'ann',
      401,
      undefined,
      'ann',
    ]
    const expected = Array.from({ length: 5 }, () => aRound).flat()
    expect(rounds).to.deep.equal(expected)
    expect(ports.size).to.equal(1)
  })
})
