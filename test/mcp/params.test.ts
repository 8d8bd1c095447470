// Tests the checks of method params and client info.
import { expect } from 'chai'
import { CHECKS, clientInfoProblem, paramsText } from '../../core/mcp/methods/params.ts'

function problem(method: string, params: unknown) {
  const found = CHECKS.get(method)?.(params)
  return found && paramsText(found)
}
const prompt = { type: 'ref/prompt', name: 'x' }
const argument = { name: 'x', value: '' }

const VALID: ReadonlyArray<readonly [string, object]> = [
  ['initialize', { protocolVersion: '1', clientInfo: { name: 'x', icons: [] }, capabilities: {} }],
  ['logging/setLevel', { level: 'debug' }],
  ['tools/list', {}],
  ['tools/list', { cursor: 'x', other: 1 }],
  ['tools/call', { name: 'x', arguments: { any: [] } }],
  ['prompts/get', { name: 'x', arguments: { any: 1 } }],
  ['resources/read', { uri: 'x', _meta: {} }],
  ['completion/complete', { ref: prompt, argument, context: { arguments: { a: 'b' } } }],
  ['completion/complete', { ref: { type: 'ref/resource', uri: 'x' }, argument }],
  ['jobs/get', { name: 1 }],
]

const INVALID: ReadonlyArray<readonly [string, object, string]> = [
  ['initialize', { protocolVersion: '1', clientInfo: {} }, "`params` must have required property 'capabilities'"],
  [
    'initialize',
    { protocolVersion: '1', clientInfo: { title: 1 }, capabilities: {} },
    '`params.clientInfo.title` must be a string',
  ],
  ['initialize', { protocolVersion: '1', clientInfo: [], capabilities: {} }, '`params.clientInfo` must be an object'],
  ['tools/list', { cursor: 1 }, '`params.cursor` must be a string'],
  ['tools/call', {}, "`params` must have required property 'name'"],
  ['tools/call', { name: null }, '`params.name` must be a string'],
  ['tools/call', { name: 'x', arguments: [] }, '`params.arguments` must be an object'],
  ['resources/subscribe', { uri: {} }, '`params.uri` must be a string'],
  ['completion/complete', { ref: { type: 'ref/prompt' }, argument }, "`params.ref` must have required property 'name'"],
  ['completion/complete', { ref: { ...prompt, type: 'ref/resource' }, argument }, "property 'uri'"],
  ['completion/complete', { ref: { ...prompt, type: 'x', uri: 'x' }, argument }, 'allowed values: ref/prompt, ref/'],
  ['completion/complete', { ref: null, argument }, '`params.ref` must be an object'],
  [
    'completion/complete',
    { ref: prompt, argument, context: { arguments: { ['a'.repeat(50)]: 1 } } },
    `\`params.context.arguments.${'a'.repeat(40)}\` must be a string`,
  ],
]

describe('Params checks', () => {
  for (const [method, params] of VALID) {
    it(`accept ${method} with ${JSON.stringify(params)}`, () => {
      expect(problem(method, params)).to.equal(undefined)
    })
  }

  for (const [method, params, expected] of INVALID) {
    it(`refuse ${method} with ${JSON.stringify(params)}`, () => {
      expect(problem(method, params)).to.include(expected)
    })
  }

  it('name the members of a log level', () => {
    expect(problem('logging/setLevel', { level: 'loud' }))
      .to.include('`params.level`')
      .and.include('debug, info')
  })

  it('apply to client info', () => {
    expect(clientInfoProblem({ name: 'x', version: '1' })).to.equal(undefined)
    expect(clientInfoProblem({ name: 1 })).to.equal('`clientInfo.name` must be a string')
  })
})
