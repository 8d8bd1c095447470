// Tests upstream tokens for tools: owner, scopes, expiry and provider outages.
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { type StartedBridge, seen, startBridge, stopBridges } from '../../support/bridge.ts'
import { eventually } from '../../support/eventually.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { modern, type RpcAnswer } from '../../support/rpc.ts'
import { taskClient } from '../tasks/support/task-client.ts'

const API = 'https://api.acme.example/files'

const ask = (bridge: StartedBridge, token: string, args: object = {}): Promise<RpcAnswer> =>
  modern(
    bridge.resource,
    'tools/call',
    { name: 'upstream', arguments: args },
    { headers: { Authorization: `Bearer ${token}` } },
  )

/** The token that the tool had last. */
const last = () => seen.at(-1) ?? ''

describe('auth-bridge: ctx.upstreamToken', () => {
  let bridge: StartedBridge

  before(async () => {
    bridge = await startBridge({ idp: { vendor: 'entra', scopes: [API] } })
  })
  beforeEach(() => {
    bridge.idp.mood = 'well'
  })
  after(stopBridges)

  it('returns the provider token of the caller', async () => {
    const client = await bridge.client()
    const { access_token } = await client.logIn({ scope: 'read' })
    const answer = await ask(bridge, access_token)
    expect(answer.status).to.equal(200)
    const told = await fetch(`${bridge.idp.issuer}/me`, { headers: { Authorization: `Bearer ${last()}` } })
    expect(await told.json()).to.include({ sub: 'ann' })
    expect(JSON.stringify(answer.message)).not.to.include(last())
  })

  it('has the scopes that the tool names, and is requested once', async () => {
    const client = await bridge.client()
    const { access_token } = await client.logIn({ scope: 'read' })
    await ask(bridge, access_token)
    const plain = last()
    const asked = bridge.idp.asked('token')
    const tokens = new Set<string>()
    for (let call = 0; call < 5; call++) {
      await ask(bridge, access_token, { scope: API })
      tokens.add(last())
    }
    expect(tokens.size).to.equal(1)
    expect([...tokens][0]).not.to.equal(plain)
    expect(bridge.idp.asked('token')).to.equal(asked + 1)
  })

  it('is replaced after the API refused it, with and without scopes', async () => {
    const clock = createManualClock()
    const own = await startBridge({ idp: { vendor: 'entra', scopes: [API] }, clock })
    const { access_token } = await (await own.client()).logIn({ scope: 'read' })
    for (const args of [{}, { scope: API }]) {
      await ask(own, access_token, args)
      const rejected = last()
      await clock.advance(2_000)
      await ask(own, access_token, { ...args, rejected })
      expect(last()).not.to.equal(rejected)
      const renewed = last()
      await ask(own, access_token, { ...args, rejected })
      expect(last(), 'a token that was not refused is kept').to.equal(renewed)
    }
  })

  it('is refreshed before expiry', async () => {
    const short = await startBridge({ idp: { accessTokenLife: 30 } })
    const client = await short.client()
    const { access_token } = await client.logIn({ scope: 'read' })
    await ask(short, access_token)
    const first = last()
    await eventually(
      'another token',
      async () => {
        await ask(short, access_token)
        return last()
      },
      token => token !== first,
    )
  })

  it('is available to task.before, and not to the run of a task', async () => {
    const tasks = await startBridge({
      config: {
        toolsets: {
          all: [
            defineTool({
              name: 'later',
              input: { type: 'object', properties: { length: { type: 'number' } } },
              task: {
                use: 'required',
                before: async (_args, { upstreamToken }) => ({ length: (await upstreamToken()).length }),
              },
              handler: async ({ length }, { upstreamToken }) => `${length} ${await upstreamToken()}`,
            }),
          ],
        },
      },
      plugins: { tasks: {} },
    })
    const { access_token } = await (await tasks.client()).logIn({ scope: 'read' })
    const client = taskClient(tasks.resource, undefined, {}, { Authorization: `Bearer ${access_token}` })
    const { status, result } = await client.until(await client.begin('later'))
    expect(status).to.equal('completed')
    expect(result.isError).to.equal(true)
    expect(result.content[0].text).to.include('Task runs have no token')
  })

  it('requires a new sign-in after the upstream login ended', async () => {
    const client = await bridge.client()
    const { access_token } = await client.logIn({ scope: 'read' })
    const page = await client.browser.page(`${bridge.issuer}/account`)
    await client.browser.click(page, { signOut: 'yes' })
    const answer = await ask(bridge, access_token)
    expect(answer.status).to.equal(401)
    expect(answer.headers.get('www-authenticate')).to.include('error="invalid_token"').and.include('resource_metadata=')
  })

  it('reports a provider outage, and works again after recovery', async () => {
    const client = await bridge.client()
    const { access_token } = await client.logIn({ scope: 'read' })
    bridge.idp.mood = 'down'
    const answer = await ask(bridge, access_token, { scope: `${API} more` })
    expect(JSON.stringify(answer.message)).to.match(/does not (answer|respond)|is not available/)
    // What is there already is given.
    expect((await ask(bridge, access_token)).message.result.isError).not.to.equal(true)
    bridge.idp.mood = 'well'
    expect((await ask(bridge, access_token, { scope: API })).message.result.isError).not.to.equal(true)
  })
})

describe('auth-bridge: provider outage', () => {
  let bridge: StartedBridge

  before(async () => {
    bridge = await startBridge({ clock: createManualClock() })
  })
  after(stopBridges)

  it('allows client refreshes for a limited time, and no sign-in', async () => {
    const client = await bridge.client()
    const first = await client.logIn({ scope: 'read' })
    let token = first.refresh_token ?? ''
    for (const mood of ['down', 'gone'] as const) {
      bridge.idp.mood = mood
      const asked = bridge.idp.asked('token')
      const refresh = async () => {
        const { error, refresh_token } = await client.refreshLater(token)
        expect(error, mood).to.equal(undefined)
        token = refresh_token ?? ''
      }
      await eventually('the provider was asked, in vain', refresh, () => bridge.idp.asked('token') > asked)
    }
    const other = await bridge.client()
    bridge.idp.mood = 'down'
    const { headers, status } = await fetch(other.authorizeUrl({ resource: bridge.resource }), { redirect: 'manual' })
    expect([status, headers.get('location')?.startsWith(`${bridge.issuer}/interaction/`)]).to.deep.equal([303, true])
    bridge.idp.mood = 'well'
    expect((await client.refresh(token)).error).to.equal(undefined)
    expect((await other.logIn({ scope: 'read' })).error).to.equal(undefined)
  })

  it('keeps logins after an untrusted provider response, and logs an error', async () => {
    const strange = await startBridge({ clock: createManualClock() })
    const client = await strange.client()
    let token = (await client.logIn({ scope: 'read' })).refresh_token ?? ''
    const answers: Record<string, (answer: Record<string, unknown>) => Record<string, unknown>> = {
      'an ID token of another issuer': answer => ({
        ...answer,
        id_token: strange.idp.sign({ ...strange.idp.read(answer['id_token']), iss: 'https://evil.example' }),
      }),
      'an ID token that is none': answer => ({ ...answer, id_token: 'x.y.z' }),
      nothing: () => ({}),
    }
    for (const [what, tamper] of Object.entries(answers)) {
      const asked = strange.idp.asked('token')
      strange.idp.rotates = false
      strange.idp.tamper = tamper
      const refresh = async () => {
        const { error, refresh_token } = await client.refreshLater(token)
        expect(error, what).to.equal(undefined)
        token = refresh_token ?? ''
      }
      await eventually(`${what} was given`, refresh, () => strange.idp.asked('token') > asked)
    }
    const lines = strange.log.filter(({ code }) => code === 'MH2149')
    expect(lines.map(({ level }) => level)).to.include('error')
    strange.idp.tamper = undefined
    expect((await client.refreshLater(token)).error).to.equal(undefined)
  })

  it('shows a page for an outage and for a provider error', async () => {
    const fresh = await startBridge()
    const client = await fresh.client()
    fresh.idp.mood = 'down'
    const away = await client.ask({ scope: 'read' })
    expect([away.status, away.html.includes('is not available')]).to.deep.equal([503, true])
    fresh.idp.mood = 'well'
    fresh.idp.failing.token = { status: 401, error: 'invalid_client', error_description: 'wrong secret' }
    const wrong = await client.ask({ scope: 'read' })
    expect([wrong.status, wrong.html.includes('rejected the configuration of this service')]).to.deep.equal([502, true])
    const line = fresh.log.find(({ message }) => message === 'signing in at the identity provider failed' && true)
    expect(fresh.log.filter(({ fault }) => fault === 'misconfigured')).to.have.lengthOf(1)
    expect(line).not.to.equal(undefined)
    fresh.idp.failing.token = undefined
    expect((await client.ask({ scope: 'read' })).status).to.equal(200)
  })
})
