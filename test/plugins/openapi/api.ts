// A real API on port 0 that records requests, and a requester for its operations.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { openConnections } from '../../../client/node/fetch.ts'
import { createTokenClient } from '../../../client/token-client.ts'
import { systemClock } from '../../../core/http/clock.ts'
import type { CallContext, CallToolResult } from '../../../core/index.ts'
import type { Services } from '../../../core/internal.ts'
import type { Logger } from '../../../core/plugin.ts'
import { type CredentialOptions, planCredentials } from '../../../plugins/openapi/credentials.ts'
import type { Operation, OperationArguments, Parameter } from '../../../plugins/openapi/operation.ts'
import { createRequester, type RequesterOptions } from '../../../plugins/openapi/request.ts'

export interface ReceivedRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly rawHeaders: readonly string[]
  readonly body: Buffer
}

type Answer = (request: ReceivedRequest, res: ServerResponse) => void

export interface Api extends AsyncDisposable {
  readonly url: string
  readonly host: string
  readonly requests: ReceivedRequest[]
  answer: Answer
  connections: number
}

const sendOk: Answer = (_, res) => res.setHeader('Content-Type', 'application/json').end('{"ok":true}')

async function bodyOf(req: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk)
  return Buffer.concat(chunks)
}

export async function startApi(answer: Answer = sendOk): Promise<Api> {
  const server = createServer(async (req, res) => {
    const { method = '', url = '', headers, rawHeaders } = req
    const request = { method, url, headers, rawHeaders, body: await bodyOf(req) }
    api.requests.push(request)
    api.answer(request, res)
  })
  server.on('connection', () => {
    api.connections++
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const api: Api = {
    url: `http://${host}`,
    host,
    requests: [],
    answer,
    connections: 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
  return api
}

export const parameter = (given: Partial<Parameter> & Pick<Parameter, 'name' | 'in'>): Parameter => ({
  required: given.in === 'path',
  argument: [given.name],
  schema: {},
  style: given.in === 'query' || given.in === 'cookie' ? 'form' : 'simple',
  explode: (given.style ?? (given.in === 'query' || given.in === 'cookie' ? 'form' : 'simple')) === 'form',
  allowReserved: false,
  allowEmptyValue: false,
  ...given,
})

export const operationAt = (baseUrl: string, given: Partial<Operation> = {}): Operation => ({
  id: 'test',
  method: 'get',
  path: '/things',
  baseUrl,
  parameters: [],
  security: [],
  accepts: ['application/json'],
  schemas: {},
  ...given,
})

interface KeptLine {
  readonly fields: object
  readonly text: string
}

export interface Given
  extends Partial<Omit<RequesterOptions, 'credentials'>>,
    Partial<Pick<CredentialOptions, 'schemes' | 'auth'>> {
  readonly given?: CredentialOptions['credentials']
}

/** What a tool gets as `ctx`, as far as requests read it. */
export const contextOf = (given: Partial<CallContext> & object = {}): CallContext =>
  ({
    signal: new AbortController().signal,
    user: undefined,
    session: undefined,
    headers: {},
    ...given,
  }) as CallContext

const services = {
  openConnections,
  createTokenClient: async options => createTokenClient(options),
} satisfies Partial<Services> as unknown as Services

/** A requester whose private addresses are allowed, and its log. */
export function requesterOf(api: Pick<Api, 'host'>, options: Given = {}) {
  const lines: KeptLine[] = []
  const warn = (fields: object, text: string) => void lines.push({ fields, text })
  const log = { warn, error: warn, info: warn, debug: warn } as unknown as Logger
  const { schemes = new Map(), given = {}, auth, ...rest } = options
  const what = 'plugins.openapi.documents.test'
  const clock = rest.clock ?? systemClock
  const credentials = planCredentials({
    what,
    schemes,
    credentials: given,
    auth,
    allowHosts: [],
    services: () => services,
    clock,
  })
  const request = createRequester({
    what,
    allowHosts: [api.host],
    headers: {},
    forwardHeaders: [],
    timeout: 5_000,
    retries: 2,
    concurrency: 16,
    maxResponse: 1_048_576,
    errorExcerpt: 2_048,
    services: () => services,
    log,
    ...rest,
    clock,
    credentials,
  })
  return { request, credentials, lines }
}

/** The result of a call; a ToolError becomes the `isError` result that core makes of it. */
export async function resultOf(call: Promise<CallToolResult>): Promise<CallToolResult> {
  try {
    return await call
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'ToolError') throw error
    return { content: [{ type: 'text', text: error.message }], isError: true }
  }
}

export const textOf = ({ content }: CallToolResult): string =>
  content.map(block => (block.type === 'text' ? block.text : `[${block.type}]`)).join('\n')

/** Calls an operation once and returns the request that the API received, if any. */
export async function sentBy(
  api: Api,
  operation: Partial<Operation>,
  args: OperationArguments,
  options: Given = {},
): Promise<{ readonly sent: ReceivedRequest | undefined; readonly result: CallToolResult }> {
  const { request } = requesterOf(api, options)
  const before = api.requests.length
  try {
    const result = await resultOf(request(operationAt(api.url, operation), args, contextOf()))
    return { sent: api.requests[before], result }
  } finally {
    await request.close()
  }
}
