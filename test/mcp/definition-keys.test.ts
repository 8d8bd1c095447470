// Tests that unknown keys of definitions and plugins are rejected, for example a misspelt `access`.
import { expect } from 'chai'
import { z } from 'zod'
import { loadConfig } from '../../core/config/load-config.ts'
import { hostOfConfig } from '../../core/create-host.ts'
import {
  type Definition,
  definePrompt,
  defineResource,
  defineTool,
  type JsonSchema,
  type StandardSchema,
} from '../../core/index.ts'
import { type AddedExtension, StartError } from '../../core/plugin.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { plugin } from '../fixtures/plugins.ts'
import { expectStopped, startFailure } from '../fixtures/start-failure.ts'
import { modern, type RpcMessage } from '../support/rpc.ts'
import { createTestLog, startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)
after(removeFolders)

const CORE = JSON.stringify(new URL('../../core/index.ts', import.meta.url).href)
const IMPORT = `import { defineConfig, defineTool, definePrompt, defineResource } from ${CORE}\n`

const tool = (more: object) => defineTool({ name: 'purge', handler: () => 'gone', ...more })
const resource = (more: object) => defineResource({ name: 'r', uriTemplate: 'a:{b}', handler: () => '', ...more })
const prompt = (more: object) => definePrompt({ name: 'p', handler: () => '', ...more })

/** What is written, the place that is told, and what was probably meant. */
const unknown: Array<[string, Definition, string, string | undefined]> = [
  ['access', tool({ acces: 'admin' }), 'acces', 'access'],
  ['input', tool({ inputSchema: { type: 'object' } }), 'inputSchema', 'input'],
  ['output', tool({ outputSchema: { type: 'object' } }), 'outputSchema', 'output'],
  ['visibility', tool({ visiblity: 'listed' }), 'visiblity', 'visibility'],
  ['anything', tool({ colour: 'red' }), 'colour', undefined],
  ['a hint', tool({ annotations: { destructive: true } }), 'annotations.destructive', 'destructiveHint'],
  ["an icon's key", tool({ icons: [{ src: 'a' }, { src: 'b', mime: 'image/png' }] }), 'icons[1].mime', 'mimeType'],
  ["a resource's access", resource({ Access: 'admin' }), 'Access', 'access'],
  ["a resource's annotation", resource({ annotations: { audiance: ['user'] } }), 'annotations.audiance', 'audience'],
  ["a resource's completion", resource({ completion: {} }), 'completion', 'complete'],
  ["a prompt's arguments", prompt({ argument: {} }), 'argument', 'arguments'],
  ["an argument's key", prompt({ arguments: { a: { requred: true } } }), 'arguments.a.requred', 'required'],
]

const wrong: Array<[string, Definition, string]> = [
  ['access that is a policy in place', tool({ access: { scope: 'admin' } }), 'access'],
  ['access that is a list', tool({ access: ['admin'] }), 'access'],
  ['an empty access', tool({ access: '' }), 'access'],
  ['another visibility', tool({ visibility: 'hidden' }), 'visibility'],
  ['a hint that is text', tool({ annotations: { destructiveHint: 'yes' } }), 'annotations.destructiveHint'],
  ['an icon that is text', tool({ icons: ['icon.png'] }), 'icons[0]'],
  ['an argument that is text', prompt({ arguments: { a: 'what' } }), 'arguments.a'],
  ['a completion that is a list', resource({ complete: { b: ['x'] } }), 'complete.b'],
]

const served = (...all: Definition[]) => ({ toolsets: { all }, routes: { '/': { toolsets: 'all' } } })

describe('Unknown definition keys', () => {
  for (const [what, definition, place, meant] of unknown) {
    it(`stop startup: ${what}`, async () => {
      const { message } = await startFailure(served(definition))
      expect(message).to.contain(`toolsets.all[0].${place} (`)
      if (meant === undefined) expect(message).to.contain('unknown option\n')
      else expect(message).to.contain(`unknown option; did you mean "${meant}"?`)
    })
  }

  for (const [what, definition, place] of wrong) {
    it(`stop startup for an invalid value: ${what}`, async () => {
      await expectStopped(served(definition), `toolsets.all[0].${place} (`)
      await expectStopped(served(definition), 'wrong value')
    })
  }

  it('are reported for all definitions at once', async () => {
    const { message } = await startFailure(served(...unknown.map(([, definition]) => definition)))
    const told = unknown.filter(([, , place], index) => message.includes(`toolsets.all[${index}].${place} (`))
    expect(told).to.have.length(unknown.length)
  })

  it('are ignored if undefined, in schemas and in `_meta`', async () => {
    const fine = tool({
      acces: undefined,
      annotations: { readOnly: undefined, readOnlyHint: true },
      icons: [{ src: 'https://x.example/i.png', theme: 'dark' }],
      _meta: { 'x.example/any': { key: 1 } },
      input: { type: 'object', properties: { a: { 'x-any': 1 } } },
    })
    const { url } = await startHost(served(fine))
    expect((await modern(url, 'tools/list')).message.result.tools).to.have.length(1)
  })
})

describe('Location of unknown definition keys', () => {
  it('is the line in the config for an inline definition', async () => {
    const folder = await makeFolder({
      'mcp.config.ts': [
        IMPORT.trim(),
        'const kept = defineTool({ name: "kept", handler: () => 1, acess: "x" } as never)',
        'export default defineConfig({',
        "  server: { name: 'a', version: '1' },",
        '  toolsets: {',
        '    admin: [',
        '      defineTool({',
        "        name: 'purge',",
        "        acces: 'admin',",
        '        annotations: {',
        '          destructive: true,',
        '        },',
        "        handler: () => 'gone',",
        '      } as never),',
        '      kept,',
        '    ],',
        '  },',
        "  routes: { '/': { toolsets: 'admin' } },",
        '})',
      ].join('\n'),
    })
    const [outcome] = await Promise.allSettled([hostOfConfig(await loadConfig({ cwd: folder }), createTestLog())])
    const { message } = (outcome as PromiseRejectedResult).reason
    expect(message).to.contain('mcp.config.ts:9  toolsets.admin[0].acces (tool "purge")')
    expect(message).to.contain('mcp.config.ts:11  toolsets.admin[0].annotations.destructive (tool "purge")')
    expect(message).to.contain('mcp.config.ts:15  toolsets.admin[1].acess (tool "kept")')
  })

  it('is the line in the module for every module format', async () => {
    const folder = await makeFolder({
      'a.ts': `${IMPORT}export const a = defineTool({\n  name: 'a',\n  handler: () => 1,\n  acces: 'x',\n} as never)`,
      'b.mjs': `${IMPORT}const more = { acces: 'x' }\nexport const b = definePrompt({\n  ...more,\n  name: 'b',\n  handler: () => '',\n})`,
      'c.mjs': `${IMPORT}const make = name => defineTool({ name, handler: () => 1, acces: 'x' })\nexport default ['c', 'd'].map(make)`,
    })
    const { message } = await startFailure(
      { toolsets: { one: ['./*.{ts,mjs}'], two: './a.ts' }, routes: { '/': { toolsets: 'one' } } },
      folder,
    )
    expect(message).to.contain('The config has 4 problems')
    expect(message).to.match(/a\.ts:5 {2}acces \(tool "a"\)/)
    expect(message).to.match(/b\.mjs:3 {2}acces \(prompt "b"\)/)
    expect(message).to.match(/c\.mjs {2}acces \(tool "c"\)/)
    expect(message).to.match(/c\.mjs {2}acces \(tool "d"\)/)
  })
})

describe('Unknown keys of definitions added later', () => {
  it('stop startup with the plugin name for contributed definitions', async () => {
    const adds = plugin(host => host.toolset([tool({ acces: 'admin' })]))
    const config = { ...served(), plugins: { 'transport-streamable': {}, adds } }
    await expectStopped(config, /plugins\.adds on \/: tool "purge": acces: unknown option; did you mean "access"\?/)
  })

  it('are rejected by the add methods of host.tools, resources and prompts', async () => {
    const { host, url } = await startHost(served(defineTool({ name: 'a', handler: () => 1 })))
    for (const [, definition, place] of [...unknown, ...wrong]) {
      const items = { tool: host.runtime.tools, resource: host.runtime.resources, prompt: host.runtime.prompts }
      const kind = definition.name === 'purge' ? 'tool' : definition.name === 'r' ? 'resource' : 'prompt'
      expect(() => items[kind].add(definition as never), place).to.throw(StartError, place)
    }
    const { result } = (await modern(url, 'tools/list')).message
    expect(result.tools.map(({ name }: RpcMessage) => name)).to.deep.equal(['a'])
  })

  it('fail the call in a handler, and the request in configureSession', async () => {
    const adds = defineTool({
      name: 'adds',
      handler: (_, { host }) => void host.tools.add(tool({ acces: 'admin' })) as undefined,
    })
    const config = served(adds)
    const { url } = await startHost(config)
    const { result } = (await modern(url, 'tools/call', { name: 'adds' })).message
    expect(result.isError).to.equal(true)
    const own = tool({ acces: 'admin' })
    const configured = await startHost({ ...config, configureSession: (_, session) => session.add(own) })
    expect((await modern(configured.url, 'tools/list')).status).to.equal(500)
  })
})

describe('Unknown plugin keys', () => {
  it('stop startup for an inline plugin', async () => {
    const early = plugin(() => {}, { need: ['user'] } as object)
    const config = { ...served(), plugins: { 'transport-streamable': {}, early } }
    await expectStopped(config, /plugins\.early: .*need: unknown option; did you mean "needs"\?/)
  })

  it('stop startup for a plugin from a file', async () => {
    const source = `import { definePlugin } from ${CORE}\nexport default definePlugin({ options: { type: 'object', properties: {} }, setup() {}, provide: [] })`
    const folder = await makeFolder({ 'late.mjs': source })
    const config = { ...served(), plugins: { 'transport-streamable': {}, './late.mjs': {} } }
    await expectStopped(
      config,
      /plugins\['\.\/late\.mjs'\].*provide: unknown option; did you mean "provides"\?/,
      folder,
    )
  })
})

describe('Types of definitions', () => {
  it('check the handler result against a Standard Schema output', () => {
    const output = z.object({ a: z.number(), b: z.string().default('b') })
    // @ts-expect-error: a key that the output does not have, and one that it needs is missing
    defineTool({ name: 'a', output, handler: () => ({ c: 'x' }) })
    // @ts-expect-error: a value of another type
    defineTool({ name: 'a', output, handler: async (_, ctx) => ({ a: ctx.route.path }) })
    // @ts-expect-error: nothing at all
    defineTool({ name: 'a', output, handler() {} })
    const text = { type: 'text', text: 'gone' } as const
    const kept = [
      defineTool({ name: 'a', output, handler: () => ({ a: 1 }) }),
      defineTool({ name: 'a', output, handler: async () => ({ a: 1, b: 'c' }) }),
      defineTool({ name: 'a', output, handler: () => ({ content: [text], isError: true }) }),
      defineTool({
        name: 'a',
        output,
        handler: (_, ctx) => (ctx.user ? { a: 1 } : { content: [text], isError: true }),
      }),
      defineTool({ name: 'a', output: output as JsonSchema | StandardSchema, handler: () => ({ c: 'x' }) }),
      defineTool({ name: 'a', output: { type: 'object' }, handler: () => ({ c: 'x' }) }),
      defineTool({ name: 'a', output, handler: () => ({}) as ReturnType<AddedExtension['result']> }),
      defineTool({
        name: 'a',
        output,
        handler() {
          throw new Error('always')
        },
      }),
    ]
    expect(kept).to.have.length(8)
  })

  it('reject unknown keys in literals', () => {
    const handler = () => ''
    // @ts-expect-error: a key that a tool does not have
    defineTool({ name: 'a', handler, acces: 'admin' })
    // @ts-expect-error: the protocol's name for it
    defineTool({ name: 'a', handler, inputSchema: { type: 'object' } })
    // @ts-expect-error: a hint that there is not
    defineTool({ name: 'a', handler, annotations: { readOnly: true } })
    // @ts-expect-error: an icon's key
    defineTool({ name: 'a', handler, icons: [{ src: 'a', mime: 'b' }] })
    // @ts-expect-error: access is a name
    defineTool({ name: 'a', handler, access: { scope: 'admin' } })
    // @ts-expect-error: a key that a resource does not have
    defineResource({ name: 'a', uri: 'a:b', handler, acces: 'admin' })
    // @ts-expect-error: a key that a prompt does not have
    definePrompt({ name: 'a', handler, acces: 'admin' })
    // @ts-expect-error: a key that an argument does not have
    definePrompt({ name: 'a', handler, arguments: { b: { requred: true } } })
    const kept = definePrompt({
      name: 'a',
      arguments: { b: { required: true }, c: { description: 'c' } },
      handler: ({ b, c }: { b: string; c?: string }) => b + (c ?? ''),
    })
    expect(kept.name).to.equal('a')
  })
})
