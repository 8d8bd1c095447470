// Tests documents and overlays that attack the host: size, depth, regular expressions, and URLs of other servers.
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { readSurvey, type SurveyOptions } from '../../../cli/openapi/read-survey.ts'
import { StartError } from '../../../core/plugin.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { itThorough } from '../../support/thorough.ts'
import { type Api, startApi } from './api.ts'
import { count, printCounts } from './attack-counts.ts'

after(removeFolders)
after(printCounts)

const OK = { responses: {} }
const documentOf = (more: object) => ({ openapi: '3.1.0', info: {}, paths: { '/a': { get: OK } }, ...more })
const withSchema = (schema: object, more: object = {}) =>
  documentOf({ paths: { '/a': { get: { ...OK, parameters: [{ name: 'q', in: 'query', schema }] } } }, ...more })
const withBody = (schema: object, schemas: object) =>
  documentOf({
    paths: { '/a': { post: { ...OK, requestBody: { content: { 'application/json': { schema } } } } } },
    components: { schemas },
  })

/** Reads the document; a refusal has a code. Any other error is a fault of the host. */
async function survey(files: Record<string, string>, options: SurveyOptions = {}) {
  const folder = await makeFolder(files)
  const [name = ''] = Object.keys(files)
  try {
    return await readSurvey(name, { methods: 'all', ...options }, folder)
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    return undefined
  }
}

/** A chain of schemas in which each refers twice to the next: 2^40 schemas without sharing. */
const doubling = (keyword: (one: object, other: object) => object) => {
  const schemas: Record<string, object> = { S40: { type: 'string' } }
  for (let level = 0; level < 40; level++) {
    const $ref = `#/components/schemas/S${level + 1}`
    schemas[`S${level}`] = keyword({ $ref }, { $ref })
  }
  return withBody({ $ref: '#/components/schemas/S0' }, schemas)
}

const DEEP = 100_000
const HUGE: Readonly<Record<string, () => string>> = {
  'deep JSON': () => `{"openapi":"3.1.0","paths":${'['.repeat(DEEP)}${']'.repeat(DEEP)}}`,
  'deep JSON that is not closed': () => `{"openapi":"3.1.0","paths":${'{"a":'.repeat(DEEP)}`,
  'a deep default': () =>
    JSON.stringify(withSchema({ default: 'DEEP' })).replace('"DEEP"', '['.repeat(DEEP) + ']'.repeat(DEEP)),
  'a deep enum': () =>
    JSON.stringify(withSchema({ enum: ['DEEP'] })).replace('"DEEP"', '['.repeat(DEEP) + ']'.repeat(DEEP)),
  'a deep extension': () =>
    JSON.stringify(documentOf({ 'x-a': 'DEEP' })).replace('"DEEP"', '['.repeat(DEEP) + ']'.repeat(DEEP)),
  'schemas that double in allOf': () => JSON.stringify(doubling((one, other) => ({ allOf: [one, other] }))),
  'schemas that double in anyOf': () => JSON.stringify(doubling((one, other) => ({ anyOf: [one, other] }))),
  'schemas that double in properties': () => JSON.stringify(doubling((a, b) => ({ properties: { a, b } }))),
  'many parameters': () =>
    JSON.stringify(
      documentOf({
        paths: {
          '/a': {
            get: {
              ...OK,
              parameters: Array.from({ length: 5_000 }, (_, index) => ({ name: `p${index}`, in: 'query' })),
            },
          },
        },
      }),
    ),
  'many values of an enum': () =>
    JSON.stringify(withSchema({ enum: Array.from({ length: 50_000 }, (_, index) => index) })),
  'a long path': () => JSON.stringify(documentOf({ paths: { [`/${'a'.repeat(2_000_000)}`]: { get: OK } } })),
}

const EXPLODING: Readonly<Record<string, () => object>> = {
  'open braces in a path': () => documentOf({ paths: { [`/${'{'.repeat(1_000_000)}`]: { get: OK } } }),
  'open braces in a server': () => documentOf({ servers: [{ url: `https://a.example/${'{'.repeat(1_000_000)}` }] }),
  'slashes in a server': () => documentOf({ servers: [{ url: `https://a.example${'/'.repeat(1_000_000)}a` }] }),
  'underscores in an operationId': () =>
    documentOf({ paths: { '/a': { get: { ...OK, operationId: `a${'_'.repeat(1_000_000)}b` } } } }),
  'spaces in a description': () =>
    documentOf({ paths: { '/a': { get: { ...OK, description: `a${' '.repeat(1_000_000)}b` } } } }),
  'tildes in a pointer': () => withSchema({ $ref: `#/components/${'~'.repeat(1_000_000)}` }),
  'percent signs in a path': () => documentOf({ paths: { [`/${'%'.repeat(1_000_000)}`]: { get: OK } } }),
  'semicolons in a media type': () =>
    documentOf({
      paths: { '/a': { post: { ...OK, requestBody: { content: { [`a/b${'; '.repeat(500_000)}`]: {} } } } } },
    }),
}

describe('A document that attacks the host', () => {
  for (const [what, text] of Object.entries(HUGE)) {
    const test = what.startsWith('many ') ? itThorough : it
    test(`is read or refused with ${what}`, async () => {
      count('huge and deep documents')
      await survey({ 'api.json': text() })
    })
  }

  itThorough('is read or refused with deep YAML', async () => {
    count('huge and deep documents', 2)
    await survey({ 'api.yaml': `openapi: 3.1.0\npaths: ${'['.repeat(DEEP)}${']'.repeat(DEEP)}\n` })
    const levels = Array.from({ length: 3_000 }, (_, level) => `${' '.repeat(level)}a:`).join('\n')
    await survey({ 'api.yaml': `${levels}\n` })
  })

  for (const [what, document] of Object.entries(EXPLODING)) {
    it(`is read or refused at once with ${what}`, async () => {
      count('exploding regular expressions')
      await survey({ 'api.json': JSON.stringify(document()) })
    })
  }

  it('at a URL cannot use servers of another origin', async () => {
    await using api: Api = await startApi()
    const evil = 'https://evil.example'
    const variable = { url: 'https://{host}', variables: { host: { default: 'evil.example' } } }
    for (const servers of [
      [{ url: evil }],
      [{ url: '//evil.example/v1' }],
      [{ url: '\\\\evil.example' }],
      [{ url: `http://${api.host}@evil.example` }],
      [{ url: `http://${api.host}.evil.example` }],
      [{ url: 'http://127.0.0.1:1' }],
      [variable],
      [{ url: 'file:///etc' }],
      [{ url: 'javascript:alert(1)' }],
    ]) {
      for (const place of ['document', 'path', 'operation']) {
        count('SSRF by servers')
        const own = (name: string) => (name === place ? { servers } : {})
        const paths = { '/a': { ...own('path'), get: { ...OK, ...own('operation') } } }
        api.answer = (_, res) => res.end(JSON.stringify(documentOf({ ...own('document'), paths })))
        const { tools, leftOut } = await readSurvey(`${api.url}/api.json`, { allowHosts: [api.host] }, '/')
        expect(tools, `${JSON.stringify(servers)} of ${place}`).to.deep.equal([])
        expect(leftOut).to.have.length(1)
      }
    }
  })

  it('at a URL cannot refer to another origin', async () => {
    await using api: Api = await startApi()
    api.answer = ({ url }, res) => {
      if (url === '/moved.json') return res.writeHead(302, { location: `${api.url}/secret.json` }).end()
      if (url === '/secret.json') return res.end('{"type":"string"}')
      const $ref = new URL(url, api.url).searchParams.get('ref') ?? ''
      return res.end(JSON.stringify(withSchema({ $ref })))
    }
    for (const ref of [
      'moved.json',
      'http://169.254.169.254/latest',
      '//evil.example/s.json',
      '\\\\evil.example\\s.json',
      `http://${api.host}@evil.example/s.json`,
      `https://${api.host}/secret.json`,
      'file:///etc/passwd',
      'data:application/json,{}',
    ]) {
      count('$ref and overlays')
      const url = `${api.url}/api.json?ref=${encodeURIComponent(ref)}`
      const { tools } = await readSurvey(url, { allowHosts: [api.host] }, '/')
      expect(tools, ref).to.deep.equal([])
    }
    expect(api.requests.map(({ url }) => url)).not.to.include('/secret.json')
  })

  it('can only refer to files in its folder', async () => {
    const folder = await makeFolder({ 'secret.json': '{"type":"string"}', 'api/x.json': '{}' })
    await mkdir(join(folder, 'other'))
    await symlink('..', join(folder, 'api/up'))
    for (const ref of [
      '../secret.json',
      '%2e%2e/secret.json',
      '..%2fsecret.json',
      '..\\secret.json',
      'x/../../secret.json',
      'up/secret.json',
      join(folder, 'secret.json'),
      'file://evil.example/share/s.json',
      '//evil.example/share/s.json',
      '/proc/self/environ',
    ]) {
      count('$ref and overlays')
      await writeFile(join(folder, 'api/api.json'), JSON.stringify(withSchema({ $ref: ref })))
      const { tools } = await readSurvey('api/api.json', {}, folder)
      expect(tools, ref).to.deep.equal([])
    }
  })

  itThorough('is refused if its decompressed size is above the limit', async () => {
    count('huge and deep documents')
    await using api: Api = await startApi()
    const bomb = gzipSync(Buffer.alloc(65 * 1_024 ** 2, ' '))
    api.answer = (_, res) => res.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb)
    const refused = await readSurvey(`${api.url}/api.json`, { allowHosts: [api.host] }, '/').catch(error => error)
    expect(refused).to.be.instanceOf(StartError)
    expect(refused.message).to.match(/more than 65536 kB/)
  })
})

describe('An overlay at a URL that attacks the host', () => {
  const base = JSON.stringify(
    documentOf({ servers: [{ url: 'https://api.example' }], tags: [], 'x-a': `${'a'.repeat(60)}!` }),
  )
  const tags = Array.from({ length: 130_000 }, () => ({ name: 'a' }))
  for (const [what, action, isRefused] of [
    ['an expression that takes exponential time', { target: "$[?search(@, '^(a+)+$')]", remove: true }, true],
    ['a target that takes exponential time', { target: "$[?match ( @ , '(a|a)*b')]", remove: true }, true],
    ['a long target', { target: `$${'.a'.repeat(100_000)}`, remove: true }, true],
    ['deep brackets', { target: `$[?${'('.repeat(20_000)}@.a${')'.repeat(20_000)}]`, remove: true }, true],
    ['searches in searches', { target: `$${'..*'.repeat(12)}`, remove: true }, true],
    ['filters in filters', { target: '$..[?$..[?$..[?$..*]]]', remove: true }, true],
    ['unions', { target: `$${'[*,*]'.repeat(40)}`, update: {} }, true],
    ['unions of names', { target: `$['paths','paths']${"['/a', '/a']".repeat(30)}`, update: {} }, true],
    ['unions of indexes', { target: `$.servers${'[0,0]'.repeat(40)}`, update: {} }, true],
    ['a large update of many matches', { target: '$..*', update: { tags: tags.slice(0, 100_000) } }, true],
    ["a name with ','", { target: "$['a,b'].a", remove: true }, false],
    ['many items', { target: '$', update: { tags } }, false],
    ['many items of a list', { target: '$.tags', update: tags }, false],
    ["a name with '$..?'", { target: `$['$..?'].a`, remove: true }, false],
  ] as const) {
    const test = /^(?:many|a large)/.test(what) ? itThorough : it
    test(`is ${isRefused ? 'refused' : 'applied'} at once with ${what}`, async () => {
      count('$ref and overlays')
      await using api: Api = await startApi((_, res) => {
        res.end(JSON.stringify({ overlay: '1.0.0', info: {}, actions: [action, action] }))
      })
      const options = { overlay: [`${api.url}/o.json`], allowHosts: [api.host] }
      const read = await survey({ 'api.json': base }, options)
      expect(read?.tools.map(({ name }) => name)).to.deep.equal(isRefused ? undefined : ['get_a'])
    })
  }
})
