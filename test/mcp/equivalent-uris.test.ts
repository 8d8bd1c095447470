// Tests look-up of resources by equivalent URIs, and warnings about URIs that are not valid.
import { expect } from 'chai'
import { defineResource } from '../../core/index.ts'
import { normalUri } from '../../core/mcp/normal-uri.ts'
import { modern, type RpcMessage } from '../support/rpc.ts'
import { openSession } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

const LISTED = 'KBInfo://Summary/Über uns.md'

const serve = () =>
  startHost({
    toolsets: {
      all: [
        defineResource({ name: 'about', uri: LISTED, handler: ({ uri }) => `${uri}` }),
        defineResource({ name: 'upper', uri: 'case:A', handler: () => 'A' }),
        defineResource({ name: 'lower', uri: 'case:a', handler: () => 'a' }),
        defineResource({ name: 'page', uriTemplate: 'KBInfo://Pages/{name}', handler: ({ name }) => `page ${name}` }),
      ],
    },
    routes: { '/': { toolsets: 'all' } },
  })

describe('Equivalent URIs', () => {
  const cases = [
    ['KBInfo://Summary/Über uns.md', 'kbinfo://summary/%C3%9Cber%20uns.md'],
    ['HTTP://User@EXAMPLE.com/%7efoo/%c3%9c', 'http://User@example.com/~foo/%C3%9C'],
    ['http://a/b/../c/./d/..', 'http://a/c/'],
    ['http://a/%2E%2E/b?x=%2f&y=ä#é', 'http://a/b?x=%2F&y=%C3%A4#%C3%A9'],
    ['urn:Isbn:x y', 'urn:Isbn:x%20y'],
    ['x:a%zz', 'x:a%zz'],
    ['x:\ud800', 'x:%EF%BF%BD'],
  ] as const
  for (const [uri, normal] of cases) {
    it(`${JSON.stringify(uri)} is ${normal}`, () => {
      expect(normalUri(uri)).to.equal(normal)
      expect(normalUri(normal)).to.equal(normal)
    })
  }

  it('read the same resource or template', async () => {
    const { url } = await serve()
    const read = async (uri: string) => (await modern(url, 'resources/read', { uri })).message
    const equivalent = [
      new URL(LISTED).href,
      'kbinfo://summary/%C3%9Cber%20uns.md',
      'KBInfo://SUMMARY/x/../%c3%9cber%20uns.md',
    ]
    for (const uri of equivalent) {
      const { result, error } = await read(uri)
      expect(error, uri).to.equal(undefined)
      expect(result.contents, uri).to.deep.equal([{ uri: LISTED, text: LISTED }])
    }
    expect((await read('kbinfo://pages/One%20two')).result.contents[0].text).to.equal('page One two')
    expect((await read('case:a')).result.contents[0].text).to.equal('a')
    expect((await read('case:A')).result.contents[0].text).to.equal('A')
    expect((await read('KBINFO://summary/other.md')).error.code).to.equal(-32602)
  })

  it('subscribe to the same resource, whose updates have the listed URI', async () => {
    const { url, host } = await serve()
    const session = await openSession(url)
    const stream = await session.get()
    expect(
      (await session.request('resources/subscribe', { uri: 'kbinfo://summary/%C3%9Cber%20uns.md' })).message.result,
    ).to.deep.equal({})
    host.runtime.resourceUpdated(LISTED)
    const events = await stream.until(({ message }) => message?.method === 'notifications/resources/updated')
    const last: RpcMessage = events.at(-1)?.message
    expect(last?.params).to.deep.equal({ uri: LISTED })
    stream.drop()
  })
})

describe('A URI with characters that are not allowed in URIs', () => {
  it('is a warning at startup with the URI to write', async () => {
    const { log } = await serve()
    const told = log.filter(({ level }) => level === 'warn').map(({ message }) => message)
    expect(told.filter(message => message?.includes('invalid in URIs'))).to.have.length(1)
    expect(told.join()).to.include('"kbinfo://summary/%C3%9Cber%20uns.md"')
  })
})
