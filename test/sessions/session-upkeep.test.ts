// Tests the periodic check of the sessions of a node.
import { expect } from 'chai'
import type { Session, ThisNode } from '../../core/sessions/session.ts'
import { createSessionUpkeep } from '../../core/sessions/session-upkeep.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { createTestLog } from '../support/start-host.ts'

const SWEEP = 30_000

describe('The periodic check of sessions', () => {
  it('adopts used sessions of an ended node, so that mcp_host_sessions counts them', async () => {
    const clock = createManualClock()
    const session = (digest: string, home: string, more: object = {}) =>
      ({
        digest,
        home,
        inUse: false,
        lastUsed: clock.now(),
        streams: new Map(),
        offer: { hasRunSession: false },
        ...more,
      }) as unknown as Session
    const sessions = [
      session('used', 'ended'),
      session('streaming', 'ended', { inUse: true, lastUsed: 0 }),
      session('unused', 'ended', { lastUsed: clock.now() - 1 }),
      session('adopted elsewhere', 'ended'),
      session('at a running node', 'other'),
      session('with runSession', 'ended', { offer: { hasRunSession: true } }),
    ]
    const asked: string[] = []
    const node = {
      name: 'here',
      limits: { idleTimeout: 3_600_000 },
      clock,
      log: createTestLog(),
      sessions: new Map(sessions.map(one => [one.digest, one])),
      peers: {
        async isAlive(home: string) {
          asked.push(home)
          return home === 'other'
        },
      },
      store: { shared: true, mark: async () => [], adopt: async (digest: string) => digest !== 'adopted elsewhere' },
    }
    createSessionUpkeep({ node: node as unknown as ThisNode, evict: async () => undefined, notify: () => undefined })
    await clock.advance(SWEEP)
    expect(Object.fromEntries(sessions.map(({ digest, home }) => [digest, home]))).to.deep.equal({
      used: 'here',
      streaming: 'here',
      unused: 'ended',
      'adopted elsewhere': 'ended',
      'at a running node': 'other',
      'with runSession': 'ended',
    })
    expect(asked).to.deep.equal(['ended', 'other'])
  })
})
