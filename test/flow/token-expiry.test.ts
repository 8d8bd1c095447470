import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { startProtected } from '../support/protected-host.ts'
import { listen, nextMessage, openSession } from '../support/session-client.ts'
import { openSse } from '../support/sse-client.ts'
import { stopHosts } from '../support/start-host.ts'
import { startIssuer, stopIssuers } from '../support/test-issuer.ts'

after(async () => {
  await stopHosts()
  await stopIssuers()
})

/** A token that is over soon: long enough to open streams with, short enough to wait for. */
const soon = () => Math.ceil(Date.now() / 1_000) + 2

async function start(options: { streamsOutliveToken?: boolean } = {}) {
  const issuer = await startIssuer()
  const host = await startProtected(
    { 'auth-jwt': { authority: issuer.url, ...options }, 'transport-sse': {} },
    {
      toolsets: { all: [defineTool({ name: 'whoami', handler: () => 'nobody' })] },
      routes: { '/open': { toolsets: 'all' } },
    },
  )
  const headers = { Authorization: `Bearer ${issuer.token(host.open, { exp: soon() })}` }
  const streams = {
    GET: await (await openSession(host.open, { headers })).get(),
    'subscriptions/listen': await listen(host.open, { toolsListChanged: true }, { headers }),
    'HTTP+SSE': await openSse(host.open, { headers }),
  }
  return { ...host, streams }
}

describe('token expiry on long-lived streams', () => {
  it('ends GET, HTTP+SSE and listen streams at token expiry, with a retry hint', async () => {
    const { streams } = await start()
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
    const [ends, stays] = await Promise.all([start(), start({ streamsOutliveToken: true })])
    await ends.streams.GET.rest()
    const { runtime } = stays.host
    runtime.tools.add(defineTool({ name: 'late', handler: () => '' }))
    expect((await nextMessage(stays.streams.GET)).method).to.equal('notifications/tools/list_changed')
    await nextMessage(stays.streams['subscriptions/listen'])
    const changed = await nextMessage(stays.streams['subscriptions/listen'])
    expect(changed.method).to.equal('notifications/tools/list_changed')
  })
})
