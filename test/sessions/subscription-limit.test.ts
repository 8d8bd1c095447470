// Tests the limit of resource subscriptions per owner.
import { expect } from 'chai'
import { MAX_WATCHED_BYTES_PER_OWNER } from '../../core/mcp/client-limits.ts'
import { createWatchCharges, WatchedUris, watchCost } from '../../core/sessions/change-feed.ts'

describe('Resource subscription limit', () => {
  it('applies to all sessions of an owner together', () => {
    const charge = createWatchCharges()
    const half = MAX_WATCHED_BYTES_PER_OWNER / 2
    const said = [
      charge('ada', half, false),
      charge('ada', half, false),
      charge('ada', 1, false),
      charge('bob', 1, false),
      charge('ada', -1, false),
      charge('ada', 1, false),
      charge('ada', 1, false),
      // What other nodes have let in is taken over.
      charge('ada', 10, true),
    ]
    expect(said).to.deep.equal([true, true, false, true, true, true, false, true])
  })

  it('is released when a session ends', () => {
    const charged: number[] = []
    const watched = new WatchedUris(bytes => charged.push(bytes) > 0)
    for (const uri of ['note://a', 'note://b', 'note://b']) watched.add(uri, false)
    watched.delete('note://a')
    watched.clear()
    const cost = watchCost('note://a')
    expect(charged).to.deep.equal([cost, cost, -cost, -cost])
    expect([...watched]).to.deep.equal([])
  })
})
