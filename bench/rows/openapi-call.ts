// tools/call of an operation of an OpenAPI document, against two bare hops: a node:http server that calls the API itself.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CONFIG_IMPORTS, startOurs } from '../contestants.ts'
import { callEchoApi } from '../requests.ts'
import { type Contestant, type Row, ratio } from '../row.ts'

const fileAt = (path: string) => fileURLToPath(new URL(path, import.meta.url))

const DOCUMENT = {
  openapi: '3.1.0',
  info: { title: 'Echo', version: '1.0.0' },
  paths: {
    '/echo': {
      get: {
        operationId: 'echo',
        description: 'Returns the message that it was given, unchanged.',
        parameters: [
          { name: 'message', in: 'query', required: true, description: 'What to return.', schema: { type: 'string' } },
        ],
        responses: { 200: { description: 'The message.', content: { 'application/json': { schema: {} } } } },
      },
    },
  },
}

const configText = (document: string) => `${CONFIG_IMPORTS}
const api = process.env.API_URL

export default {
  server: SERVER_INFO,
  http: { port: Number(process.env.PORT ?? 0) },
  routes: { '/mcp': { toolsets: ['api'] } },
  plugins: {
    'transport-streamable': {},
    openapi: {
      documents: { api: { document: ${JSON.stringify(document)}, baseUrl: api, allowHosts: [new URL(api).host] } },
    },
  },
}
`

/** Starts the API next to the server. Only the server counts. */
const relayed = (name: string, command: (scratch: string) => readonly string[]): Contestant => ({
  name,
  command: scratch => [fileAt('../servers/with-api.mjs'), ...command(scratch)],
  request: () => callEchoApi,
  counts: commandLine => !/with-api\.mjs|echo-api\.mjs/.test(commandLine),
})

const BARE = 'node:http, two hops'
const OURS = 'ours, openapi'

export const row: Row = {
  name: 'tools/call, openapi',
  contestants: [
    relayed(BARE, () => [fileAt('../servers/node-http-relay.mjs')]),
    {
      ...relayed(OURS, scratch => {
        const document = join(scratch, 'echo.openapi.json')
        writeFileSync(document, JSON.stringify(DOCUMENT))
        return startOurs(scratch, 'openapi', configText(document))
      }),
      ours: true,
    },
  ],
  targets: [ratio(OURS, BARE, '<=', 1.6)],
  quick: [BARE, OURS],
}
