// Tests that lists and calls use the same decision, for every caller, item kind, method and protocol version.
import { expect } from 'chai'
import { type Definition, definePrompt, defineResource, defineTool, type User } from '../../../core/index.ts'
import { listen, nextMessage } from '../../support/session-client.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { ASKERS, as, bearerJson, namesOf, type Told } from './bearer-json.ts'

after(stopHosts)

const STATES = ['open', 'listed', 'hidden'] as const
type State = (typeof STATES)[number]

const guarded = (state: State) => ({
  ...(state !== 'open' && { access: 'staff' }),
  ...(state === 'listed' && { visibility: 'listed' as const }),
})
const uriOf = (state: string) => `test://${state}/page`
const complete = () => ['value']
const definitions = STATES.flatMap((state): Definition[] => [
  defineTool({ name: state, ...guarded(state), handler: () => 'done' }),
  definePrompt({ name: state, ...guarded(state), arguments: { a: { complete } }, handler: () => 'done' }),
  defineResource({ name: state, uri: uriOf(state), ...guarded(state), handler: () => 'done' }),
  defineResource({
    name: state,
    uriTemplate: `test://${state}/of/{id}`,
    ...guarded(state),
    complete: { id: complete },
    handler: () => 'done',
  }),
])

interface Use {
  readonly what: string
  readonly list: readonly [method: string, name: string]
  readonly method: string
  readonly params: (name: string) => object
  readonly sessionOnly?: true
}

const TOOLS = ['tools/list', 'tools'] as const
const PROMPTS = ['prompts/list', 'prompts'] as const
const RESOURCES = ['resources/list', 'resources'] as const
const TEMPLATES = ['resources/templates/list', 'resourceTemplates'] as const
const argument = (name: string) => ({ argument: { name, value: '' } })

const USES: readonly Use[] = [
  { what: 'a tool', list: TOOLS, method: 'tools/call', params: name => ({ name }) },
  { what: 'a prompt', list: PROMPTS, method: 'prompts/get', params: name => ({ name }) },
  {
    what: "a prompt's argument",
    list: PROMPTS,
    method: 'completion/complete',
    params: name => ({ ref: { type: 'ref/prompt', name }, ...argument('a') }),
  },
  { what: 'a resource', list: RESOURCES, method: 'resources/read', params: name => ({ uri: uriOf(name) }) },
  {
    what: 'a resource',
    list: RESOURCES,
    method: 'resources/subscribe',
    params: name => ({ uri: uriOf(name) }),
    sessionOnly: true,
  },
  {
    what: 'what a template matches',
    list: TEMPLATES,
    method: 'resources/read',
    params: name => ({ uri: `test://${name}/of/1` }),
  },
  {
    what: 'what a template matches',
    list: TEMPLATES,
    method: 'resources/subscribe',
    params: name => ({ uri: `test://${name}/of/1` }),
    sessionOnly: true,
  },
  {
    what: "a template's variable",
    list: TEMPLATES,
    method: 'completion/complete',
    params: name => ({ ref: { type: 'ref/resource', uri: `test://${name}/of/{id}` }, ...argument('id') }),
  },
]

interface Caller {
  readonly name: string
  readonly user: Partial<User> | undefined
  readonly may: boolean
  /** The answer where it may not. */
  readonly status?: number
  readonly challenge?: string | undefined
}

const CALLERS: readonly Caller[] = [
  { name: 'nobody', user: undefined, may: false, status: 401, challenge: 'Bearer scope="staff.use staff.see"' },
  {
    name: 'a caller who lacks one scope of two',
    user: { scopes: ['staff.see'], roles: ['staff'] },
    may: false,
    status: 403,
    challenge:
      'Bearer error="insufficient_scope", error_description="needs staff.use staff.see", scope="staff.use staff.see"',
  },
  {
    name: 'a caller who lacks the role alone',
    user: { scopes: ['staff.use', 'staff.see'] },
    may: false,
    status: 403,
    challenge: undefined,
  },
  { name: 'one of the staff', user: { scopes: ['staff.use', 'staff.see'], roles: ['staff'] }, may: true },
]

let url: string
before(async () => {
  ;({ url } = await startHost({
    toolsets: { all: definitions },
    routes: { '/': { toolsets: 'all' }, '/stateless': { toolsets: 'all', stateless: true } },
    plugins: {
      'transport-streamable': {},
      bearer: bearerJson(),
      'tool-policy': { policies: { staff: { scope: ['staff.use', 'staff.see'], role: 'staff' } } },
    },
  }))
})

function expectDenied({ status, challenge, message }: Told, caller: Caller) {
  expect([status, challenge]).to.deep.equal([caller.status, caller.challenge])
  expect(message.error.code).to.equal(status === 401 ? -32600 : -32000)
}

for (const asker of ASKERS) {
  describe(`tool-policy with requests by ${asker.name}`, () => {
    for (const caller of CALLERS) {
      it(`lists and serves the same items of every kind to ${caller.name}`, async () => {
        const ask = await asker.of(url, caller.user)
        for (const { what, list, method, params, sessionOnly } of USES) {
          if (sessionOnly && !asker.isSession) continue
          const shown = caller.may ? ['hidden', 'listed', 'open'] : ['listed', 'open']
          expect(await namesOf(ask, ...list), list[0]).to.have.members(shown)
          for (const state of STATES) {
            const told = await ask(method, params(state))
            const isAllowed = caller.may || state === 'open'
            if (isAllowed) expect(told.message, `${method} of ${what}, ${state}`).to.have.property('result')
            else expectDenied(told, caller)
          }
        }
      })
    }

    it('distinguishes unknown names (-32602 or not found) from hidden ones, without a challenge', async () => {
      const ask = await asker.of(url, undefined)
      for (const [method, params] of [
        ['tools/call', { name: 'none' }],
        ['prompts/get', { name: 'none' }],
        ['resources/read', { uri: uriOf('none') }],
        ['completion/complete', { ref: { type: 'ref/prompt', name: 'none' }, ...argument('a') }],
      ] as const) {
        const { status, challenge, message } = await ask(method, params)
        expect([status, challenge], method).to.deep.equal([200, undefined])
        expect(message.error.code).to.be.oneOf([-32602, -32002])
      }
    })
  })
}

describe('tool-policy: subscriptions/listen', () => {
  for (const { name, user, may } of CALLERS) {
    it(`confirms and sends updates to ${name} only for readable resources`, async () => {
      const uris = STATES.flatMap(state => [uriOf(state), `test://${state}/of/1`])
      const stream = await listen(url, { resourceSubscriptions: uris }, { headers: as(user) })
      const { params } = await nextMessage(stream)
      stream.drop()
      expect(params.notifications).to.deep.equal({ resourceSubscriptions: may ? uris : uris.slice(0, 2) })
    })
  }
})
