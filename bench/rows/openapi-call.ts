// Compares a tools/call of an OpenAPI operation to a node:http server that calls the API.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CONFIG_IMPORTS, hostCommand, relay, withEchoApi } from '../contestants.ts'
import { type Row, ratio } from '../row.ts'

const DOCUMENT = {
  openapi: '3.1.0',
  info: { title: 'Echo', version: '1.0.0' },
  paths: {
    '/echo': {
      get: {
        operationId: 'echo',
        description: 'Returns the message unchanged.',
        parameters: [
          { name: 'message', in: 'query', required: true, description: 'What to return.', schema: { type: 'string' } },
        ],
        responses: { 200: { description: 'The message.', content: { 'application/json': { schema: {} } } } },
      },
    },
  },
}

const createConfig = (document: string) => `${CONFIG_IMPORTS}
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

const OURS = 'ours, openapi'

export const row: Row = {
  name: 'tools/call, openapi',
  contestants: [
    relay,
    withEchoApi(OURS, scratch => {
      const document = join(scratch, 'echo.openapi.json')
      writeFileSync(document, JSON.stringify(DOCUMENT))
      return hostCommand(scratch, 'openapi', createConfig(document))
    }),
  ],
  targets: [ratio(OURS, relay.name, '<=', 1.6)],
  quick: [relay.name, OURS],
}
