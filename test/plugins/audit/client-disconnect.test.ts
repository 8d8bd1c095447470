// Audit lines of requests whose client disconnects before the host decides.
import { once } from 'node:events'
import { connect } from 'node:net'
import { expect } from 'chai'
import { HostError } from '../../../core/index.ts'
import { plugin } from '../../fixtures/plugins.ts'
import { eventually } from '../../support/eventually.ts'
import { createGate, type Gate } from '../../support/gate.ts'
import { openSession } from '../../support/session-client.ts'
import { stopHosts } from '../../support/start-host.ts'
import { linesIn, startAudited } from './audited-host.ts'

afterEach(stopHosts)

/** Who calls is known once the gate that the request names is open, as with an issuer that is asked. */
function createSlowIdentity() {
  const gates = new Map<string, Gate>()
  const reached = new Map<string, Gate>()
  const gateOf = (all: Map<string, Gate>, name: string) => {
    const gate = all.get(name) ?? createGate()
    all.set(name, gate)
    return gate
  }
  const identity = plugin(
    host => {
      host.authenticate(async (ctx, next) => {
        const name = ctx.get('x-gate')
        if (name !== '') {
          gateOf(reached, name).open()
          await gateOf(gates, name).opened
        }
        const subject = ctx.get('x-user')
        if (subject === 'nobody') throw new HostError('unauthorized', { detail: 'no such user' })
        if (subject) ctx.state.user = { issuer: 'test', subject, scopes: [], roles: [], claims: {} }
        return next()
      })
      host.authorize((ctx, next) => {
        if (ctx.state.user?.subject === 'mallory') throw new HostError('forbidden', { detail: 'not you' })
        return next()
      })
    },
    { provides: ['user'] },
  )
  return {
    identity,
    reached: (name: string) => gateOf(reached, name).opened,
    open: (name: string) => gateOf(gates, name).open(),
  }
}

describe('audit: client disconnect', () => {
  it('records a request that is refused or ends after its client disconnected', async () => {
    const { identity, reached, open } = createSlowIdentity()
    const { url, file, close } = await startAudited({ config: { plugins: { identity } } })
    const { host } = new URL(url)
    const { id: sessionId } = await openSession(`${url}/mcp`, { headers: { 'x-user': 'eve' } })

    /** Sends a request, goes once the host has begun with it, and lets the host decide then. */
    async function leave(name: string, head: string, headers: Record<string, string>) {
      const fields = Object.entries({ ...headers, 'x-gate': name }).map(([field, value]) => `${field}: ${value}\r\n`)
      const { hostname, port } = new URL(url)
      const socket = connect(Number(port), hostname)
      await once(socket, 'connect')
      socket.write(`${head} HTTP/1.1\r\nHost: ${host}\r\n${fields.join('')}\r\n`)
      await reached(name)
      socket.destroy()
      await once(socket, 'close')
      // The host has heard of it once it has answered somebody else.
      await fetch(`${url}/nowhere`)
      open(name)
    }

    const attempts = 10
    for (let number = 0; number < attempts; number++) {
      await leave(`nobody ${number}`, 'GET /mcp', { 'x-user': 'nobody', Accept: 'text/event-stream' })
      await leave(`mallory ${number}`, 'GET /mcp', { 'x-user': 'mallory', Accept: 'text/event-stream' })
    }
    await leave('delete', 'DELETE /mcp', { 'x-user': 'eve', 'Mcp-Session-Id': sessionId })
    const told = () =>
      linesIn(file).then(lines => ({
        forbidden: lines.filter(({ error }) => error === 'forbidden').length,
        // Of nobody the first ten of a minute have a line; those that found nothing are among them.
        unauthorized: lines.filter(({ error }) => error === 'unauthorized').length,
        ended: lines.filter(({ event }) => event === 'session ended').length,
      }))
    const lines = await eventually('the lines', told, ({ forbidden, ended }) => forbidden === attempts && ended === 1)
    expect(lines.unauthorized).to.be.greaterThan(0)
    await close()
  })
})
