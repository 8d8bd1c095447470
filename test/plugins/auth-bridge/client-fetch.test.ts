// Tests the fetch of client documents: its time limit, which oidc-provider relies on.
import { expect } from 'chai'
import { createClientFetch } from '../../../plugins/auth-bridge/server/provider.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const URL_OF_CLIENT = 'https://app.example/client.json'

describe('auth-bridge: fetch of client documents', () => {
  it('ends after 2.5 s, also if the fetch ignores its signal, and then fetches again', async () => {
    const clock = createManualClock()
    const signals: (AbortSignal | null | undefined)[] = []
    const guardedFetch: typeof fetch = async (_url, init) => {
      signals.push(init?.signal)
      return signals.length === 1 ? new Promise<never>(() => {}) : new Response('{}')
    }
    const clientFetch = createClientFetch({ guardedFetch, mayFetch: () => true, clock })
    let outcome: unknown
    void clientFetch(URL_OF_CLIENT, {}).catch((error: unknown) => {
      outcome = error
    })
    await clock.advance(2_400)
    expect([outcome, signals[0]?.aborted]).to.deep.equal([undefined, false])
    await clock.advance(200)
    expect(outcome).to.be.instanceOf(Error)
    expect(signals[0]?.aborted).to.equal(true)
    expect(await (await clientFetch(URL_OF_CLIENT, {})).text()).to.equal('{}')
    expect(clock.pending()).to.deep.equal([])
  })

  it('accepts a response that arrived while the event loop was blocked', async () => {
    const clock = createManualClock()
    const guardedFetch: typeof fetch = () =>
      new Promise(resolve => void setImmediate(() => resolve(new Response('{}'))))
    const clientFetch = createClientFetch({ guardedFetch, mayFetch: () => true, clock })
    const fetched = clientFetch(URL_OF_CLIENT, {})
    clock.block(3_000)
    await Promise.all([fetched, clock.advance(0)])
    expect(await (await fetched).text()).to.equal('{}')
  })

  it('ends after 2.5 s if the body does not', async () => {
    const clock = createManualClock()
    const guardedFetch: typeof fetch = async () => new Response(new ReadableStream({}))
    const clientFetch = createClientFetch({ guardedFetch, mayFetch: () => true, clock })
    let outcome: unknown
    void clientFetch(URL_OF_CLIENT, {}).catch((error: unknown) => {
      outcome = error
    })
    await clock.advance(2_500)
    expect(outcome).to.be.instanceOf(Error)
  })
})
