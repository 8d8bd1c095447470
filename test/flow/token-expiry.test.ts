import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { startProtected } from '../support/protected-host.ts'
import { listen, nextMessage, openSession } from '../support/session-client.ts'
import { openSse } from '../support/sse-client.ts'
import { stopHosts } from '../support/start-host.ts'
import { startIssuer, stopIssuers } from '../support/test-issuer.ts'

after(async () => {
  await stopHosts()
  await stopIssuers()
})

/** How long the token of the streams lives, seconds. */
const LIFETIME = 600

async function start(options: { streamsOutliveToken?: boolean } = {}) {
  const issuer = await startIssuer()
  const clock = createManualClock()
  const host = await startProtected(
    { 'auth-jwt': { authority: issuer.url, ...options }, 'transport-sse': {} },
    {
      toolsets: { all: [defineTool({ name: 'whoami', handler: () => 'nobody' })] },
      routes: { '/open': { toolsets: 'all' } },
    },
    { clock },
  )
  const headers = {
    Authorization: `Bearer ${issuer.token(host.open, { exp: Math.floor(clock.now() / 1_000) + LIFETIME })}`,
  }
  const streams = {
    GET: await (await openSession(host.open, { headers })).get(),
    'subscriptions/listen': await listen(host.open, { toolsListChanged: true }, { headers }),
    'HTTP+SSE': await openSse(host.open, { headers }),
  }
  const expire = () => clock.advance(LIFETIME * 1_000)
  return { ...host, streams, expire }
}

describe('token expiry on long-lived streams', () => {
  it('ends GET, HTTP+SSE and listen streams at token expiry, with a retry hint', async () => {
    const { streams, expire } = await start()
    await expire()
    const [get, listened, sse] = [
      await streams.GET.rest(),
      await streams['subscriptions/listen'].rest(),
      await streams['HTTP+SSE'].rest(),
    ]
    expect(get.at(-1)).to.include({ retry: 1_000, data: undefined })
    expect(sse.at(-1)).to.include({ retry: 1_000, data: undefined })
    expect(listened.at(-1)?.message.result.resultType).to.equal('complete')
  })

  it('keeps streams open with `streamsOutliveToken`', async () => {
    const { host, streams, expire } = await start({ streamsOutliveToken: true })
    await expire()
    const { runtime } = host
    runtime.tools.add(defineTool({ name: 'late', handler: () => '' }))
    expect((await nextMessage(streams.GET)).method).to.equal('notifications/tools/list_changed')
    await nextMessage(streams['subscriptions/listen'])
    const changed = await nextMessage(streams['subscriptions/listen'])
    expect(changed.method).to.equal('notifications/tools/list_changed')
  })
})
