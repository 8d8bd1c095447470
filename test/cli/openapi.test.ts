// Tests `mcp-host openapi` and `mcp-host add openapi`.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { addCommand } from '../../cli/add.ts'
import { openapiCommand } from '../../cli/openapi.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { printedBy } from './run-command.ts'

after(removeFolders)

const API = `openapi: 3.0.3
info: { title: Orders, version: '1' }
servers: [{ url: https://api.example }]
paths:
  /orders:
    get: { operationId: listOrders, responses: {} }
    post: { operationId: addOrder, security: [{ key: [] }], responses: {} }
    delete: { parameters: [{ $ref: '#/nothing' }], responses: {} }
components: { securitySchemes: { key: { type: apiKey, in: header, name: x-key } } }
`
const YAML = `server: { name: a, version: 1.0.0 }
# The routes.
routes: { /: { toolsets: [] } }
plugins: { transport-streamable: {} }
`
const CODE = `export default {
  server: { name: 'a', version: '1.0.0' },
  toolsets: { a: [] },
  routes: {
    '/': { toolsets: 'a' },
  },
  plugins: { 'transport-streamable': {} },
}
`

const openapi = (folder: string, ...words: string[]) =>
  printedBy(
    context =>
      openapiCommand.run(
        { methods: 'all', ...(words.includes('--json') && { json: true }) },
        ['orders.openapi.yaml'],
        context,
      ),
    { cwd: folder },
  )
const add = (folder: string, config: string) =>
  printedBy(context => addCommand.run({ config }, ['openapi', 'orders.openapi.yaml'], context), { cwd: folder })

describe('mcp-host openapi', () => {
  it('prints the tools, their sizes, and omitted operations with the reason', async () => {
    const folder = await makeFolder({ 'orders.openapi.yaml': API })
    const printed = await openapi(folder)
    expect(printed).to.match(/^orders\.openapi\.yaml: OpenAPI 3\.0, 3 operations, 2 tools with \d+ B of schemas/)
    expect(printed).to.match(/listOrders +GET \/orders +\d+ B/)
    expect(printed).to.match(
      /DELETE \/orders orders\.openapi\.yaml:8 \(#\/paths\/~1orders\/delete\/parameters\/0\/\$ref\): /,
    )
    expect(printed).to.match(/key \(apiKey\)/)
    const { tools, leftOut } = JSON.parse(await openapi(folder, '--json'))
    expect(tools.map(({ name }: { name: string }) => name)).to.deep.equal(['listOrders', 'addOrder'])
    expect(leftOut).to.have.length(1)
  })

  it('prints sizes of outputs, shortened schemas, and operations left out by options', async () => {
    const schema = `{ type: object, properties: { text: { type: string, description: ${'x'.repeat(2_000)} } } }`
    const answer = `{ 200: { description: ok, content: { application/json: { schema: ${schema} } } } }`
    const folder = await makeFolder({ 'orders.openapi.yaml': API.replace('responses: {}', `responses: ${answer}`) })
    const print = (values: Parameters<typeof openapiCommand.run>[0]) =>
      printedBy(context => openapiCommand.run(values, ['orders.openapi.yaml'], context), { cwd: folder })
    const all = await print({ output: 'pass' })
    expect(all).to.match(/^listOrders +GET \/orders +\d+ B +2\.\d kB$/m)
    expect(all).to.match(/Left out by options:\n {2}1: [^\n]*"post"/)
    const small = await print({ output: 'pass', all: true, 'max-schema': '1kb' })
    expect(small).to.match(/^listOrders +GET \/orders +\d+ B +\d+ B +any value: \S/m)
    expect(small).to.match(/Left out by options:\n {2}addOrder: [^\n]*"post"/)
  })
})

describe('mcp-host add openapi', () => {
  it('adds the document and a route to a YAML config, and keeps its comments', async () => {
    const folder = await makeFolder({ 'orders.openapi.yaml': API, 'mcp.config.yaml': YAML })
    const printed = await add(folder, 'mcp.config.yaml')
    expect(printed).to.match(/Added toolset "orders" to mcp\.config\.yaml, served at \/orders\./)
    expect(printed).to.match(/^Next: mcp-host dev/m)
    expect(printed).to.match(/^1 of 3 operations become tools/m)
    expect(printed).not.to.match(/credentials|allowHosts/)
    const text = readFileSync(join(folder, 'mcp.config.yaml'), 'utf8')
    expect(text)
      .to.include('# The routes.')
      .and.match(/orders: *\n? *\{? *document: \.\/orders\.openapi\.yaml/)
    const again = (await rejectionOf(add(folder, 'mcp.config.yaml'))) as Error
    expect(again.message).to.match(/already has a toolset "orders" at plugins\.openapi\.documents\.orders/)
  })

  it('adds them to a config in TypeScript or JavaScript', async () => {
    const folder = await makeFolder({ 'orders.openapi.yaml': API, 'mcp.config.mjs': CODE })
    await add(folder, 'mcp.config.mjs')
    const text = readFileSync(join(folder, 'mcp.config.mjs'), 'utf8')
    expect(text).to.include("openapi: { documents: { orders: { document: './orders.openapi.yaml' } } },")
    expect(text).to.include("'/orders': { toolsets: 'orders' },")
  })

  it('counts served operations, and names missing credentials and blocked servers', async () => {
    const secured = API.replace('https://api.example', 'http://orders.internal:8080/v2')
      .replace('operationId: listOrders,', 'operationId: listOrders, security: [{ key: [], cert: [] }, { token: [] }],')
      .replace('components: { securitySchemes: {', '  /free: { get: { responses: {} } }\n$& cert: { type: mutualTLS },')
      .replace('x-key }', 'x-key }, token: { type: http, scheme: bearer }')
    const folder = await makeFolder({ 'orders.openapi.yaml': secured })
    const printed = await printedBy(context => addCommand.run({}, ['openapi', 'orders.openapi.yaml'], context), {
      cwd: folder,
    })
    expect(printed).to.match(/^1 of 4 operations become tools/m)
    expect(printed).to.match(
      /: 1, .*plugins\.openapi\.documents\.orders\.credentials: "key" and "cert" \(mutualTLS: not supported\), or "token"$/m,
    )
    expect(printed).to.match(
      /http:\/\/orders\.internal:8080\/v2 .* list "orders\.internal:8080" in allowHosts \(plugins\.openapi\.documents\.orders\.allowHosts\)$/m,
    )
    expect(await openapi(folder)).to.match(/Blocked servers:\n {2}http:\/\/orders\.internal:8080\/v2: /)
  })

  it('leaves no backup next to a config that it creates', async () => {
    const folder = await makeFolder({ 'orders.openapi.yaml': API })
    const printed = await printedBy(context => addCommand.run({}, ['openapi', 'orders.openapi.yaml'], context), {
      cwd: folder,
    })
    expect(printed).to.include('Created mcp.config.yaml.').and.not.include('.bak')
    expect(readdirSync(folder).filter(name => name.startsWith('mcp.config'))).to.deep.equal(['mcp.config.yaml'])
    expect(readFileSync(join(folder, 'mcp.config.yaml'), 'utf8')).to.include('document: ./orders.openapi.yaml')
  })

  it('prints what to add if the config is not a literal', async () => {
    const code = `const routes = () => ({ '/': { toolsets: 'a' } })\nexport default { server: { name: 'a', version: '1.0.0' }, toolsets: { a: [] }, routes: routes(), plugins: {} }\n`
    const folder = await makeFolder({ 'orders.openapi.yaml': API, 'mcp.config.mjs': code })
    expect(await add(folder, 'mcp.config.mjs')).to.match(
      /cannot be edited automatically\. Add:\n {2}plugins\.openapi\.documents\.orders/,
    )
    expect(readFileSync(join(folder, 'mcp.config.mjs'), 'utf8')).to.equal(code)
  })
})
