// Serves an OpenAPI document through a real host: a stub API that is made from the document, and calls with sample arguments.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename, dirname } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { expect } from 'chai'
import type { JsonSchema } from '../../core/index.ts'
import { createLoad } from '../../plugins/openapi/document/load.ts'
import { readApi } from '../../plugins/openapi/read-api.ts'
import { startHost } from './start-host.ts'

type Schema = JsonSchema | boolean | undefined

const MAX_SAMPLE = 6

/** A value that fits a schema, with required properties only. Undefined for schemas that need more than types. */
export function sampleOf(schema: Schema, defs: JsonSchema, depth = 0): unknown {
  if (typeof schema !== 'object' || depth > MAX_SAMPLE) return 'x'
  const { $ref, type, properties = {}, required = [], items, minItems } = schema
  const next = (one: unknown) => sampleOf(one as Schema, defs, depth + 1)
  if (typeof $ref === 'string') return next(defs[$ref.slice('#/$defs/'.length)])
  for (const key of ['const', 'default'] as const) if (key in schema) return schema[key]
  if (Array.isArray(schema['enum'])) return schema['enum'][0]
  for (const key of ['anyOf', 'oneOf'] as const) if (Array.isArray(schema[key])) return next(schema[key][0])
  if (Array.isArray(schema['allOf'])) {
    const parts = schema['allOf'].map(next)
    return parts.every(part => typeof part === 'object') ? Object.assign({}, ...parts) : parts[0]
  }
  const [kind = 'properties' in schema ? 'object' : 'string'] = [type].flat()
  if (kind === 'object') {
    return Object.fromEntries((required as string[]).map(name => [name, next((properties as JsonSchema)[name])]))
  }
  if (kind === 'array') return Array.from({ length: Math.max(Number(minItems ?? 0), 1) }, () => next(items))
  if (kind === 'integer' || kind === 'number') return Number(schema['minimum'] ?? schema['exclusiveMinimum'] ?? 0) + 1
  if (kind === 'boolean') return true
  if (kind === 'null') return null
  return textFor(schema)
}

const TEXTS: Readonly<Record<string, string>> = {
  'date-time': '2026-01-02T03:04:05Z',
  date: '2026-01-02',
  time: '03:04:05Z',
  uri: 'https://example.com/',
  email: 'one@example.com',
  uuid: '00000000-0000-4000-8000-000000000000',
  ipv4: '192.0.2.1',
}

const textFor = ({ format, minLength = 1, contentEncoding }: JsonSchema): string =>
  contentEncoding === 'base64' ? 'eHg=' : (TEXTS[`${format}`] ?? 'x'.repeat(Math.max(Number(minLength), 1)))

export interface CheckedDocument {
  readonly tools: number
  readonly called: number
  readonly leftOut: readonly string[]
}

const METHODS = ['get', 'put', 'post', 'delete', 'patch'] as const

/** Serves every operation; compiles each schema, lists the tools, and calls some of the operations. */
export async function checkDocument(file: string, calls: number): Promise<CheckedDocument> {
  const directory = dirname(file)
  const document = basename(file)
  const settings = {
    directory,
    load: createLoad(
      () => Promise.reject(new Error('no network')),
      () => undefined,
    ),
  }
  const source = {
    ...{ document, methods: [...METHODS], prefix: '', arguments: 'flat', output: 'pass', maxSchema: '32kb' },
    ...{ forwardHeaders: [], baseUrl: 'https://api.example' },
  } as unknown as Parameters<typeof readApi>[0]
  const { api, tools, faulty } = await readApi(source, settings)
  const ajv = new Ajv2020({ strict: false, logger: false, code: { optimize: false } })
  addFormats.default(ajv)
  const compiled = new Set<string>()
  for (const { input, output } of tools) {
    for (const fitted of [input, output]) {
      if (!fitted) continue
      expect(fitted.bytes).to.equal(Buffer.byteLength(JSON.stringify(fitted.schema)))
      expect(fitted.bytes).to.be.at.most(32_768)
      const text = JSON.stringify(fitted.schema)
      if (compiled.has(text)) continue
      compiled.add(text)
      ajv.compile(fitted.schema)
      ajv.removeSchema(fitted.schema)
    }
  }

  const templates = tools.map(({ operation: { method, path, baseUrl } }) => {
    const { pathname } = new URL(baseUrl)
    const pattern = `${pathname.replace(/\/$/, '')}${path}`
      .split(/\{[^}]*\}/)
      .map(text => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    return { method: method.toUpperCase(), pattern: new RegExp(`^${pattern.join('[^/]+')}$`) }
  })
  const served: string[] = []
  const unknown: string[] = []
  const stub = createServer((req, res) => {
    const [path = ''] = (req.url ?? '').split('?')
    const known = templates.some(({ method, pattern }) => method === req.method && pattern.test(path))
    ;(known ? served : unknown).push(`${req.method} ${path}`)
    req.resume().on('end', () => {
      res.writeHead(known ? 200 : 404, { 'content-type': 'application/json' }).end(JSON.stringify({ ok: known }))
    })
  })
  await new Promise<void>(resolve => stub.listen(0, '127.0.0.1', resolve))
  const origin = `127.0.0.1:${(stub.address() as AddressInfo).port}`
  const credentials = Object.fromEntries(
    [...api.securitySchemes].map(([name, scheme]) => [
      name,
      scheme.type === 'http' && scheme.scheme === 'basic' ? { username: 'one', password: 'a-secret' } : 'a-secret',
    ]),
  )
  const documents = {
    api: {
      ...{ document, baseUrl: `http://${origin}`, allowHosts: [origin], methods: [...METHODS], credentials },
    },
  }
  const routes = { '/': { toolsets: 'api' } }
  const { url } = await startHost(
    { toolsets: {}, routes, plugins: { 'transport-streamable': {}, openapi: { documents } } },
    directory,
  )
  const client = new Client({ name: 'test', version: '1.0.0' })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  try {
    const listed = []
    let cursor: string | undefined
    do {
      const page = await client.listTools(cursor === undefined ? {} : { cursor })
      listed.push(...page.tools)
      cursor = page.nextCursor
    } while (cursor !== undefined)
    const every = Math.max(1, Math.floor(listed.length / calls))
    const chosen = listed.filter((_, index) => index % every === 0).slice(0, calls)
    for (const { name, inputSchema } of chosen) {
      const args = sampleOf(inputSchema, (inputSchema['$defs'] ?? {}) as JsonSchema) as Record<string, unknown>
      const before = served.length
      const result = await client.callTool({ name, arguments: args })
      expect(result.isError, `${name} ${JSON.stringify(args)}: ${JSON.stringify(result.content)}`).to.not.equal(true)
      expect(result.structuredContent).to.deep.equal({ ok: true })
      expect(served.length, name).to.equal(before + 1)
    }
    expect(unknown).to.deep.equal([])
    return { tools: listed.length, called: chosen.length, leftOut: faulty.map(({ id, reason }) => `${id} ${reason}`) }
  } finally {
    await client.close()
    stub.closeAllConnections()
    await new Promise(resolve => stub.close(resolve))
  }
}
