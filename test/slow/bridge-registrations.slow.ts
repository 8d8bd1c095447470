// A flood of registrations from many addresses: none is kept, in the store or on the heap.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import { send, watchedStore } from '../plugins/auth-bridge/attacks/attacker.ts'
import { startBridge, stopBridges } from '../support/bridge.ts'
import { REDIRECT } from '../support/form-browser.ts'

const FLOOD = 2_000
const AT_ONCE = 20
const MOST_GROWTH = 16 * 1_048_576

describe('a flood of registrations from many addresses', () => {
  after(stopBridges)

  it('leaves nothing in the store, and does not grow the heap', async () => {
    const watched = watchedStore()
    const plugins = { 'grant-store-test': watched.plugin }
    const { issuer } = await startBridge({ plugins, config: { http: { trustProxy: true } } })
    let address = 0
    async function register() {
      address++
      const { status } = await send(`${issuer}/register`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': `198.51.${address >> 8}.${address & 255}` },
        body: JSON.stringify({ redirect_uris: [REDIRECT], token_endpoint_auth_method: 'none' }),
      })
      expect(status).to.equal(201)
    }
    async function flood(count: number) {
      for (let made = 0; made < count; made += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, register))
    }
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const heap = () => {
      collect()
      return process.memoryUsage().heapUsed
    }
    await flood(400)
    const before = heap()
    await flood(FLOOD)
    expect(watched.given).to.deep.equal([])
    expect(heap() - before).to.be.below(MOST_GROWTH)
  })
})
