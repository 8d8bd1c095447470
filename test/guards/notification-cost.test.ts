// Tests the number of serializations and view builds per change notification.
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { listen, nextMessage, openSession } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import type { StreamExchange } from '../support/stream-exchange.ts'

afterEach(stopHosts)

const tool = (name: string) => defineTool({ name, handler: () => name })

/** Counts calls of JSON.stringify and what they gave, until `restore`. */
function countSerialized() {
  const { stringify } = JSON
  const counted = { times: 0, characters: 0, restore: () => void Object.assign(JSON, { stringify }) }
  JSON.stringify = ((...args: Parameters<typeof stringify>) => {
    const text = stringify(...args)
    counted.times++
    counted.characters += text?.length ?? 0
    return text
  }) as typeof stringify
  return counted
}

/** What a change serializes, and how often a tool is looked at for views, with so many streams open. */
async function costOfChange(count: number, open: (url: string) => Promise<StreamExchange>) {
  const seen = tool('seen')
  let looks = 0
  Object.defineProperty(seen, 'access', { get: () => void looks++ })
  const { url, host } = await startHost({ toolsets: { all: [seen] }, routes: { '/': { toolsets: 'all' } } })
  const streams: StreamExchange[] = []
  while (streams.length < count) streams.push(await open(`${url}/`))
  const before = looks
  expect(before, 'the counter counts').to.be.at.least(1)
  const counted = countSerialized()
  try {
    host.runtime.tools.add(tool('added'))
    for (const stream of streams) {
      const { method } = await nextMessage(stream)
      expect(method).to.equal('notifications/tools/list_changed')
    }
  } finally {
    counted.restore()
  }
  for (const stream of streams) stream.drop()
  return { times: counted.times, characters: counted.characters, looks: looks - before }
}

async function openGet(url: string) {
  const session = await openSession(url)
  return session.get()
}

async function openListen(url: string) {
  const stream = await listen(url, { toolsListChanged: true })
  // That it is open is told first.
  await nextMessage(stream)
  return stream
}

describe('Change notification cost', () => {
  it('is one serialization for all sessions, without building views', async () => {
    const [few, many] = [await costOfChange(3, openGet), await costOfChange(13, openGet)]
    expect(many).to.deep.equal(few)
    expect(few.times, 'the counter counts').to.be.at.least(1)
  })

  it('is one serialization for all subscriptions, plus their subscription ids', async () => {
    const [few, many] = [await costOfChange(3, openListen), await costOfChange(13, openListen)]
    expect(many.looks).to.equal(few.looks)
    expect(many.times - few.times).to.be.at.most(10)
    expect(many.characters - few.characters, 'ids of at most four digits').to.be.at.most(10 * 4)
  })
})
