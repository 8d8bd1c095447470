// Tests that callers without access learn nothing about parameters, because access is checked before arguments.
import { expect } from 'chai'
import { definePrompt, defineResource, defineTool } from '../../../core/index.ts'
import { modern } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { ASKERS, as, bearerJson } from './bearer-json.ts'

const PARAMETER = 'codeword'
const property = { type: 'string', minLength: 3, 'x-mcp-header': 'Codeword' }
const complete = { [PARAMETER]: () => ['value'] }

const definitions = [
  defineTool({
    name: 'launch',
    access: 'staff',
    input: { type: 'object', properties: { [PARAMETER]: property }, required: [PARAMETER] },
    handler: () => 'done',
  }),
  definePrompt({
    name: 'launch',
    access: 'staff',
    arguments: { [PARAMETER]: { required: true, complete: complete[PARAMETER] } },
    handler: () => 'done',
  }),
  defineResource({
    name: 'launch',
    uriTemplate: `test://launch/{${PARAMETER}}`,
    access: 'staff',
    complete,
    handler: () => 'done',
  }),
]

const argumentOf = (name: string) => ({ argument: { name, value: '' } })
const prompt = { type: 'ref/prompt', name: 'launch' }
const matched = { type: 'ref/resource', uri: 'test://launch/1' }

/** Each is wrong in a way that a caller who may is told of, by the parameter's name or by an answer of its own. */
const WRONG: ReadonlyArray<readonly [method: string, params: object]> = [
  ['tools/call', { name: 'launch', arguments: {} }],
  ['tools/call', { name: 'launch', arguments: { [PARAMETER]: 7 } }],
  ['tools/call', { name: 'launch', arguments: { [PARAMETER]: 'x' } }],
  ['prompts/get', { name: 'launch' }],
  ['prompts/get', { name: 'launch', arguments: { [PARAMETER]: 7 } }],
  ['completion/complete', { ref: prompt, ...argumentOf('other') }],
  ['completion/complete', { ref: prompt, ...argumentOf(PARAMETER) }],
  ['completion/complete', { ref: matched, ...argumentOf('other') }],
  ['completion/complete', { ref: matched, ...argumentOf(PARAMETER) }],
]

let url: string
before(async () => {
  ;({ url } = await startHost({
    toolsets: { all: definitions },
    routes: { '/': { toolsets: 'all' }, '/stateless': { toolsets: 'all', stateless: true } },
    plugins: {
      'transport-streamable': {},
      bearer: bearerJson(),
      'tool-policy': { policies: { staff: { scope: 'staff' } } },
    },
  }))
})
after(stopHosts)

describe('tool-policy: parameters of inaccessible items', () => {
  for (const asker of ASKERS) {
    for (const [who, user, status] of [
      ['nobody', undefined, 401],
      ['who lacks the scope', {}, 403],
    ] as const) {
      it(`are not revealed to ${who}, requested by ${asker.name}`, async () => {
        const ask = await asker.of(url, user)
        const answers = []
        for (const [method, params] of WRONG) {
          const { message, ...rest } = await ask(method, params)
          expect(JSON.stringify(message), method).not.to.match(/codeword/i)
          answers.push({ ...rest, error: message.error })
        }
        // The same to the letter: no answer tells a right parameter from a wrong one.
        for (const answer of answers) expect(answer).to.deep.equal(answers[0])
        expect(answers[0]?.status).to.equal(status)
      })
    }
  }

  it('are not revealed by the Mcp-Param header check, which runs only for authorized callers', async () => {
    const statuses = []
    for (const user of [undefined, {}, { scopes: ['staff'] }]) {
      const headers = { ...as(user), 'Mcp-Param-Codeword': 'other' }
      const { status, text } = await modern(url, 'tools/call', WRONG[2]?.[1] as Record<string, unknown>, { headers })
      statuses.push([status, /codeword/i.test(text)])
    }
    expect(statuses).to.deep.equal([
      [401, false],
      [403, false],
      [400, true],
    ])
  })
})
