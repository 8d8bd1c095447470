// Content for older protocol versions: newer content types and structured content.
import { expect } from 'chai'
import { definePrompt, defineTool } from '../../../core/index.ts'
import type { Revision } from '../../../core/plugin.ts'
import { legacy } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'

const LATEST = '2025-11-25'
const audio = { type: 'audio' as const, data: 'AAAA', mimeType: 'audio/wav' }
const link = { type: 'resource_link' as const, uri: 'test://page', name: 'page' }
const text = { type: 'text' as const, text: 'plain' }
const image = { type: 'image' as const, data: 'AAAA', mimeType: 'image/png' }
const embedded = { type: 'resource' as const, resource: { uri: 'test://page', text: 'inside' } }

const kinds = defineTool({ name: 'kinds', handler: () => [text, image, embedded, audio, link] })
const talk = definePrompt({
  name: 'talk',
  handler: () => [text, audio, link].map(content => ({ role: 'user' as const, content })),
})
const object = defineTool({ name: 'object', output: { type: 'object' }, handler: () => ({ a: 1 }) })
const list = defineTool({ name: 'list', output: { type: 'array' }, handler: () => [1, 2] })
const number = defineTool({ name: 'number', output: { type: 'number' }, handler: () => 7 })

let url: string
before(async () => {
  const all = [kinds, talk, object, list, number]
  ;({ url } = await startHost({ stateless: true, toolsets: { all }, routes: { '/': { toolsets: 'all' } } }))
})
after(stopHosts)

const at = (revision: string | undefined, method: string, params: Record<string, unknown> = {}) =>
  legacy(url, method, params, { revision })
const call = (revision: string | undefined, name: string) => at(revision, 'tools/call', { name })

describe('Legacy protocol on a stateless route: content', () => {
  const words = { audio: { type: 'text', text: '[audio]' }, link: { type: 'text', text: 'page: test://page' } }
  const known: Array<[Revision | undefined, object, object]> = [
    ['2025-11-25', audio, link],
    ['2025-06-18', audio, link],
    ['2025-03-26', audio, words.link],
    [undefined, audio, words.link],
    ['2024-11-05', words.audio, words.link],
  ]
  for (const [revision, knownAudio, knownLink] of known) {
    it(`${revision ?? 'no version header'}: converts newer content types of tools to text`, async () => {
      const { content } = (await call(revision, 'kinds')).message.result
      expect(content).to.deep.equal([text, image, embedded, knownAudio, knownLink])
    })

    it(`${revision ?? 'no version header'}: converts newer content types of prompts to text`, async () => {
      const { messages } = (await at(revision, 'prompts/get', { name: 'talk' })).message.result
      const contents = [text, knownAudio, knownLink]
      expect(messages).to.deep.equal(contents.map(content => ({ role: 'user', content })))
    })
  }

  it('sends structured content only if it is an object, otherwise as text', async () => {
    const result = async (name: string) => (await call(LATEST, name)).message.result
    expect(await result('object')).to.deep.equal({
      content: [{ type: 'text', text: '{"a":1}' }],
      structuredContent: { a: 1 },
    })
    expect(await result('list')).to.deep.equal({ content: [{ type: 'text', text: '[1,2]' }] })
    expect(await result('number')).to.deep.equal({ content: [{ type: 'text', text: '7' }] })
  })

  it('lists an output schema only if it describes an object', async () => {
    const { tools } = (await at(LATEST, 'tools/list')).message.result
    const schemas = Object.fromEntries(tools.map(({ name, outputSchema }: never) => [name, outputSchema]))
    expect([schemas.object, schemas.list, schemas.number]).to.deep.equal([{ type: 'object' }, undefined, undefined])
  })
})
