// Tests what documents become: faults with file, line and pointer, `$ref` to other files, overlays, filters, names and arguments.
import { mkdir, symlink, truncate, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { readSurvey, type SurveyOptions } from '../../../cli/openapi/read-survey.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { rejectionOf } from '../../fixtures/rejection-of.ts'
import { count, printCounts } from './attack-counts.ts'

after(printCounts)

after(removeFolders)

const HEAD = 'openapi: 3.0.3\ninfo: { title: T, version: "1" }\nservers: [{ url: https://api.example }]\n'
const OK = 'responses: { "200": { description: ok } }'

async function survey(files: Record<string, string>, options: SurveyOptions = { methods: 'all' }) {
  const folder = await makeFolder(files)
  const [first = ''] = Object.keys(files)
  return readSurvey(first, options, folder)
}

const faultOf = async (text: string, name = 'api.yaml') =>
  ((await rejectionOf(survey({ [name]: text }))) as Error).message

const leftOutOf = async (files: Record<string, string>) => (await survey(files)).leftOut.map(({ reason }) => reason)

describe('A document that cannot be used', () => {
  for (const [what, text, message] of [
    ['is not YAML', 'openapi: 3.0.3\n  info: [', /^api\.yaml:\d: not valid YAML/],
    ['has a key twice', 'openapi: 3.0.3\nopenapi: 3.0.3\n', /^api\.yaml:2: duplicate key/],
    ['is empty', '', /^api\.yaml \(#\): an OpenAPI document must be an object/],
    ['is something else', 'a: 1\n', /^api\.yaml:1 \(#\): is not an OpenAPI document: `openapi` is missing/],
    ['is OpenAPI 2', 'info: {}\nswagger: "2.0"\n', /^api\.yaml:2 \(#\/swagger\): OpenAPI 2\.0 is not supported/],
    ['is OpenAPI 3.2', 'openapi: 3.2.0\n', /^api\.yaml:1 \(#\/openapi\): OpenAPI 3\.2\.0 is not supported/],
    ['has paths as a list', `${HEAD}paths: []\n`, /^api\.yaml:4 \(#\/paths\): `paths` must be an object/],
    [
      'has a security scheme of no kind',
      `${HEAD}paths: {}\ncomponents:\n  securitySchemes:\n    key: { type: magic, in: query }\n`,
      /^api\.yaml:7 \(#\/components\/securitySchemes\/key\/type\): is not an OpenAPI security scheme/,
    ],
    [
      'has aliases that multiply',
      `a: &a [1,1,1,1,1,1,1,1,1]\n${'bcdefghi'
        .split('')
        .map((name, index) => `${name}: &${name} [${Array(9).fill(`*${'abcdefgh'[index]}`).join()}]`)
        .join('\n')}\n`,
      /^api\.yaml: not valid YAML: Excessive alias count/,
    ],
  ] as const) {
    it(`${what} is refused with its place`, async () => {
      if (what.includes('aliases')) count('huge and deep documents')
      expect(await faultOf(text)).to.match(message)
    })
  }

  it('is refused with the line of invalid JSON', async () => {
    expect(await faultOf('{\n  "openapi": "3.0.3",\n  "paths": {,}\n}', 'api.json')).to.match(
      /^api\.json:3: not valid JSON/,
    )
  })

  it('is refused if it is missing, a folder or too large', async () => {
    const folder = await makeFolder({})
    await mkdir(join(folder, 'inner.yaml'))
    count('huge and deep documents')
    await writeFile(join(folder, 'large.json'), '{}')
    await truncate(join(folder, 'large.json'), 65 * 1_024 ** 2)
    const message = async (name: string) => ((await rejectionOf(readSurvey(name, {}, folder))) as Error).message
    expect(await message('none.yaml')).to.equal('none.yaml does not exist; did you mean "inner.yaml"?')
    expect(await message('inner.yaml')).to.match(/^inner\.yaml is not a file|cannot be read/)
    expect(await message('large.json')).to.equal('large.json has more than 65536 kB')
  })
})

describe('An operation that cannot be a tool', () => {
  for (const [what, operation, message] of [
    [
      'a $ref that cannot be resolved',
      'parameters: [{ $ref: "#/components/parameters/none" }]',
      /^api\.yaml:7 \(#\/paths\/~1a\/get\/parameters\/0\/\$ref\): \$ref "#\/components\/parameters\/none" cannot be resolved/,
    ],
    [
      'a parameter without name',
      'parameters: [{ in: query }]',
      /\(#\/paths\/~1a\/get\/parameters\/0\/name\): must be a string/,
    ],
    [
      'a parameter in no place',
      'parameters: [{ name: a, in: body }]',
      /\/parameters\/0\/in\): must be one of path, query, header, cookie/,
    ],
    ['parameters as an object', 'parameters: {}', /\/get\/parameters\): `parameters` must be a list/],
    [
      'a schema that is a text',
      'parameters: [{ name: a, in: query, schema: string }]',
      /\/schema\): a schema must be an object, not a string/,
    ],
    [
      'a scheme that is not declared',
      'security: [{ none: [] }]',
      /\/security\/0\/none\): there is no security scheme "none"/,
    ],
    [
      'a body without content',
      'requestBody: { required: true }',
      /\/requestBody\/content\): `content` must be an object/,
    ],
    [
      'a server on no protocol',
      'servers: [{ url: "ftp://files.example" }]',
      /\/servers\/0\/url\): "ftp:\/\/files\.example" is not http or https/,
    ],
    [
      'a server variable without value',
      'servers: [{ url: "https://{region}.example" }]',
      /\/servers\/0\/url\): the variable "region" has no value/,
    ],
  ] as const) {
    it(`is left out, and the others are served: ${what}`, async () => {
      const text = `${HEAD}paths:\n  /a:\n    get:\n      ${operation}\n      ${OK}\n  /b:\n    get:\n      ${OK}\n`
      const { leftOut, tools } = await survey({ 'api.yaml': text })
      expect(leftOut).to.have.length(1)
      expect(leftOut[0]?.operation).to.equal('GET /a')
      expect(leftOut[0]?.reason)
        .to.match(message)
        .and.match(/^api\.yaml:\d+ /)
      expect(tools.map(({ name }) => name)).to.deep.equal(['get_b'])
    })
  }
})

describe('A $ref to another document', () => {
  const withRef = (ref: string) =>
    `${HEAD}paths:\n  /a:\n    get:\n      parameters: [{ name: a, in: query, schema: { $ref: "${ref}" } }]\n      ${OK}\n`

  it('leads to files in its folder, whose own refs are relative to them', async () => {
    const { leftOut, tools } = await survey({
      'api.yaml': withRef('schemas/pet.yaml#/Pet'),
      'schemas/pet.yaml':
        'Pet: { type: object, properties: { owner: { $ref: "owner.json" }, api: { $ref: "../api.yaml#/info" } } }\n',
      'schemas/owner.json': '{ "type": "string" }',
    })
    expect(leftOut).to.deep.equal([])
    expect(tools[0]?.input).to.be.above(150)
  })

  it('never leads to files outside of its folder, also by links, and not from files to URLs', async () => {
    const folder = await makeFolder({ 'api/api.yaml': withRef('../secret.yaml'), 'secret.yaml': 'type: string\n' })
    const reasonsOf = async (text: string) => {
      await writeFile(join(folder, 'api/api.yaml'), text)
      return (await readSurvey('api/api.yaml', {}, folder)).leftOut.map(({ reason }) => reason)
    }
    count('$ref and overlays', 4)
    expect(await reasonsOf(withRef('../secret.yaml'))).to.match(/references a file outside its folder/)
    expect(await reasonsOf(withRef('file:///etc/passwd'))).to.match(/outside its folder/)
    await symlink('../secret.yaml', join(folder, 'api/link.yaml'))
    expect(await reasonsOf(withRef('link.yaml'))).to.match(/outside its folder/)
    expect(await reasonsOf(withRef('none.yaml'))).to.match(/missing or cannot be read/)
    expect(await reasonsOf(withRef('http://169.254.169.254/latest'))).to.match(
      /a file can reference only files in its folder/,
    )
  })

  it('is followed to at most 10 documents', async () => {
    count('huge and deep documents')
    const files = Object.fromEntries(
      Array.from({ length: 12 }, (_, index) => [`s${index}.yaml`, `properties: { a: { $ref: s${index + 1}.yaml } }\n`]),
    )
    expect(await leftOutOf({ 'api.yaml': withRef('s0.yaml'), ...files })).to.match(/more than 10 other documents/)
  })

  it('names the file and line of faults in it', async () => {
    const reasons = await leftOutOf({
      'api.yaml': withRef('pet.yaml'),
      'pet.yaml': 'type: object\nproperties:\n  a: text\n',
    })
    expect(reasons).to.match(/^pet\.yaml:3 \(#\/properties\/a\): a schema must be an object/)
  })
})

describe('A document at a URL', () => {
  async function serve(answer: (url: string) => { status?: number; headers?: Record<string, string>; body?: string }) {
    const asked: string[] = []
    const server = createServer((req, res) => {
      asked.push(req.url ?? '')
      const { status = 200, headers = {}, body = '' } = answer(req.url ?? '')
      res.writeHead(status, headers).end(body)
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
    return { asked, host, url: `http://${host}`, close: () => new Promise(resolve => server.close(resolve)) }
  }

  it('is read from hosts that are allowed only, without redirects, and its refs stay on its origin', async () => {
    const body = (ref: string) =>
      JSON.stringify({
        openapi: '3.0.3',
        paths: { '/a': { get: { parameters: [{ name: 'a', in: 'query', schema: { $ref: ref } }], responses: {} } } },
      })
    const server = await serve(url => {
      if (url === '/moved') return { status: 302, headers: { location: 'http://169.254.169.254/' } }
      if (url === '/pet.json') return { body: '{"type":"string"}' }
      if (url === '/foreign.json') return { body: body('http://169.254.169.254/latest') }
      return url === '/api.json' ? { body: body('pet.json') } : { status: 404 }
    })
    const message = async (path: string, allowHosts?: string[]) =>
      ((await rejectionOf(readSurvey(`${server.url}${path}`, { allowHosts }, '/'))) as Error).message
    try {
      expect(await message('/api.json')).to.match(/cannot fetch .*: .*plain http.*list .* in allowHosts/)
      expect(server.asked).to.deep.equal([])
      const allowHosts = [server.host]
      count('$ref and overlays')
      expect(await message('/moved', allowHosts)).to.match(/HTTP 302, redirect to http:\/\/169/)
      expect(await message('/none', allowHosts)).to.match(/cannot fetch .*: HTTP 404/)
      const read = await readSurvey(`${server.url}/api.json`, { allowHosts }, '/')
      expect(read.tools.map(({ name }) => name)).to.deep.equal(['get_a'])
      expect(server.asked).to.include('/pet.json')
      count('$ref and overlays')
      const foreign = await readSurvey(`${server.url}/foreign.json`, { allowHosts }, '/')
      expect(foreign.leftOut[0]?.reason).to.match(/only documents of http:\/\/127\.0\.0\.1:\d+ can be referenced/)
    } finally {
      await server.close()
    }
  })

  it('does not send requests to other hosts, which whoever changes it can name', async () => {
    const server = await serve(() => ({
      body: JSON.stringify({
        openapi: '3.0.3',
        servers: [{ url: 'https://evil.example' }],
        paths: { '/a': { get: { responses: {} } } },
      }),
    }))
    try {
      const allowHosts = [server.host]
      count('$ref and overlays')
      const { leftOut } = await readSurvey(`${server.url}/api.json`, { allowHosts }, '/')
      expect(leftOut[0]?.reason).to.match(
        /the server https:\/\/evil\.example has another origin than the document.*set `baseUrl`/,
      )
      const trusted = await readSurvey(`${server.url}/api.json`, { allowHosts, baseUrl: 'https://api.example' }, '/')
      expect(trusted.tools).to.have.length(1)
    } finally {
      await server.close()
    }
  })
})

describe('An overlay at a URL', () => {
  it('cannot send requests to other hosts', async () => {
    let update: object = {}
    const server = createServer((_, res) => {
      const actions = [{ target: '$.servers[0]', update }]
      res.end(JSON.stringify({ overlay: '1.0.0', info: {}, actions }))
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
    const local = { target: "$.paths['/a']", update: { servers: [{ url: 'https://other.example/v1' }] } }
    const files = {
      'api.yaml': `${HEAD}paths:\n  /a: { get: { ${OK} } }\n  /b: { get: { ${OK} } }\n`,
      'o.json': JSON.stringify({ overlay: '1.0.0', info: {}, actions: [local] }),
    }
    const read = (more: SurveyOptions = {}) =>
      survey(files, { overlay: ['o.json', `http://${host}/o.json`], allowHosts: [host], ...more })
    try {
      expect((await read()).tools).to.have.length(2)
      count('$ref and overlays')
      update = { url: 'https://evil.example' }
      const { tools, leftOut } = await read()
      expect(tools.map(({ name }) => name)).to.deep.equal(['get_a'])
      expect(leftOut[0]?.reason).to.match(
        /the server https:\/\/evil\.example is from an overlay at a URL: set `baseUrl`, or list "evil\.example"/,
      )
      expect((await read({ baseUrl: 'https://api.example' })).tools).to.have.length(2)
      expect((await read({ allowHosts: [host, 'evil.example'] })).tools).to.have.length(2)
    } finally {
      await new Promise(resolve => server.close(resolve))
    }
  })
})

describe('An overlay', () => {
  const API = `${HEAD}paths:\n  /a: { get: { tags: [x], ${OK} } }\n  /b: { get: { deprecated: true, ${OK} } }\n`
  const withOverlay = (actions: object[], more: SurveyOptions = {}) =>
    survey(
      { 'api.yaml': API, 'o.json': JSON.stringify({ overlay: '1.0.0', info: {}, actions }) },
      { overlay: ['o.json'], ...more },
    )

  it('updates and removes what its JSONPath selects', async () => {
    const { tools } = await withOverlay([
      { target: '$.paths.*.get[?@.deprecated == true]', remove: true },
      { target: '$.paths[?@.get.deprecated == true]', remove: true },
      { target: "$.paths['/a'].get", update: { operationId: 'findAll', tags: ['y'] } },
      { target: '$.paths', update: { "/it's": { get: { responses: {} } } } },
      { target: "$.paths['/it\\'s'].get", update: { operationId: 'quoted' } },
      { target: '$.nothing', remove: true },
    ])
    expect(tools.map(({ name }) => name)).to.deep.equal(['findAll', 'quoted'])
  })

  it('does not reach the prototype of objects', async () => {
    count('$ref and overlays')
    await withOverlay([{ target: '$', update: JSON.parse('{"__proto__":{"polluted":true}}') }])
    expect(({} as { polluted?: unknown }).polluted).to.equal(undefined)
  })

  it('that is not valid is refused with its place', async () => {
    const message = async (overlay: object) =>
      (
        (await rejectionOf(
          survey({ 'api.yaml': API, 'o.json': JSON.stringify(overlay) }, { overlay: ['o.json'] }),
        )) as Error
      ).message
    expect(await message({})).to.match(/^o\.json \(#\/overlay\): must be a 1\.0 version|^o\.json:1 /)
    expect(await message({ overlay: '1.0.0' })).to.match(/#\/actions\): must be a list/)
    expect(await message({ overlay: '1.0.0', actions: [{ target: '$[' }] })).to.match(
      /^o\.json:1 \(#\/actions\/0\/target\): is not a JSONPath/,
    )
  })

  it('cannot refer to other hosts', async () => {
    count('$ref and overlays')
    const { leftOut } = await withOverlay([
      {
        target: "$.paths['/a'].get",
        update: { parameters: [{ name: 'q', in: 'query', schema: { $ref: 'https://evil.example/s.json' } }] },
      },
    ])
    expect(leftOut[0]?.reason).to.match(/a file can reference only files in its folder/)
  })
})

describe('Selection and names', () => {
  const API = `${HEAD}paths:
  /pets: { get: { operationId: pets/list, tags: [pets], ${OK} }, post: { operationId: pets_list, ${OK} } }
  /pets/{id}: { get: { tags: [pets, admin], ${OK} }, delete: { operationId: remove, deprecated: true, ${OK} } }
  /admin/keys: { get: { operationId: ${'long'.repeat(20)}, ${OK} } }
  /twice: { get: { operationId: remove, ${OK} } }
`
  const namesWith = async (options: SurveyOptions) =>
    (await survey({ 'api.yaml': API }, options)).tools.map(({ name }) => name)

  it('take GET operations only, unless others are named', async () => {
    expect(await namesWith({})).to.have.length(4)
    expect(await namesWith({ methods: 'delete,post' })).to.deep.equal(['pets_list', 'remove'])
  })

  it('are unique, and have letters, digits, _ and -, at most 64 of them', async () => {
    const names = await namesWith({ methods: 'all' })
    expect(new Set(names).size).to.equal(6)
    for (const name of names) expect(name).to.match(/^[A-Za-z0-9_-]{1,64}$/)
    expect(names).to.include.members(['pets_list', 'get_pets_by_id', 'remove', 'get_twice'])
    expect(names.find(name => name.startsWith('pets_list_'))).to.match(/^pets_list_[a-z2-7]{6}$/)
    expect(names.find(name => name.startsWith('long'))).to.match(/^(?:long)+l?o?n?_[a-z2-7]{6}$/)
  })

  it('do not change with the selection', async () => {
    const all = await namesWith({ methods: 'all' })
    expect(all).to.include.members(await namesWith({ include: ['pets/*', 'GET /admin/*'] }))
    expect(await namesWith({ include: ['pets/*'], exclude: [] })).to.have.length(1)
    expect(await namesWith({ exclude: ['GET /pets/*', 'long*'] })).to.have.length(2)
  })

  it('say why an operation is left out', async () => {
    const { skipped } = await survey(
      { 'api.yaml': API },
      { methods: 'get,post', include: ['pets*'], exclude: ['pets_list'] },
    )
    expect(skipped.map(({ operation, reason }) => `${operation.slice(0, 12)}: ${reason}`)).to.have.members([
      'pets_list: `exclude[0]` matches',
      'GET /pets/{i: `include` does not match',
      'remove: `methods` does not have "delete"',
      'longlonglong: `include` does not match',
      'GET /twice: `include` does not match',
    ])
  })
})
