// The program of the client leg: the official MCP client with our `fetch`, which performs OAuth. The suite passes the
// scenario in the environment and the server URL as the last argument.
import { Client, type ClientOptions, StreamableHTTPClientTransport, type Tool } from '@modelcontextprotocol/client'
import { type ClientOAuthOptions, createAuthFetch } from '../../client/index.ts'

/** What a scenario tells of itself; each has its own fields. */
interface ScenarioContext {
  readonly client_id: string
  readonly client_secret: string
  readonly issuer: string
  readonly private_key_pem: string
  readonly signing_algorithm: string
  readonly valid_jwt: string
  readonly idp_client_id: string
  readonly idp_id_token: string
  readonly idp_issuer: string
  readonly idp_token_endpoint: string
  readonly toolCalls?: ReadonlyArray<{ name: string; arguments: Record<string, unknown> }>
}

const {
  MCP_CONFORMANCE_SCENARIO: scenario = '',
  MCP_CONFORMANCE_CONTEXT: context,
  MCP_CONFORMANCE_PROTOCOL_VERSION: version,
} = process.env
const about = JSON.parse(context ?? '{}') as ScenarioContext
const serverUrl = process.argv.at(-1) ?? ''

/** The browser of a person who agrees: where it is sent is the authorization response. */
async function agree(authorizationUrl: URL): Promise<URL> {
  const response = await fetch(authorizationUrl, { redirect: 'manual' })
  const location = response.headers.get('location')
  if (location === null) throw new Error(`the authorization server shows a page: ${response.status}`)
  return new URL(location, authorizationUrl)
}

const browser = {
  redirectUri: 'http://localhost:3000/callback',
  authorizationRedirectDelegate: agree,
  strictResponse: true,
}

/** The issuer that the server names: who runs a scenario is trusted, and tells it to some clients only. */
async function issuerNamed(): Promise<string> {
  const { origin, pathname } = new URL(serverUrl)
  const response = await fetch(`${origin}/.well-known/oauth-protected-resource${pathname}`)
  const metadata = (await response.json()) as { readonly authorization_servers?: readonly string[] }
  return metadata.authorization_servers?.[0] ?? ''
}

const clientIssuer = about.client_secret === undefined ? '' : (about.issuer ?? (await issuerNamed()))

/** Who the client is. What is not here logs in with the browser and gets its client id by itself. */
const IDENTITIES: Readonly<Record<string, Omit<ClientOAuthOptions, 'serverUrl'>>> = {
  'auth/pre-registration': {
    ...browser,
    clientId: about.client_id,
    clientSecret: about.client_secret,
    clientIssuer,
  },
  'auth/client-credentials-basic': {
    clientId: about.client_id,
    clientSecret: about.client_secret,
    clientIssuer,
    grant: { type: 'client_credentials' },
  },
  'auth/client-credentials-jwt': {
    clientId: about.client_id,
    privateKey: about.private_key_pem,
    alg: about.signing_algorithm,
    grant: { type: 'client_credentials' },
  },
  'auth/enterprise-managed-authorization': {
    clientId: about.client_id,
    clientSecret: about.client_secret,
    clientIssuer,
    grant: {
      type: 'enterprise',
      idToken: async () => about.idp_id_token,
      idp: { issuer: about.idp_issuer, tokenEndpoint: about.idp_token_endpoint, clientId: about.idp_client_id },
    },
  },
  'auth/wif-jwt-bearer': {
    clientId: about.client_id,
    grant: { type: 'jwt_bearer', assertion: async () => about.valid_jwt },
  },
}

const usual = { ...browser, clientMetadataDocumentUri: 'https://conformance-test.local/client-metadata.json' }

/** Something of the type that a schema asks for. */
function exampleOf({ type }: { readonly type?: unknown }): unknown {
  const examples: Readonly<Record<string, unknown>> = { number: 2, integer: 2, boolean: true, object: {}, array: [] }
  return examples[String(type)] ?? 'something'
}

function argumentsFor({ inputSchema }: Tool): Record<string, unknown> {
  const properties = Object.entries(inputSchema.properties ?? {})
  return Object.fromEntries(properties.map(([name, schema]) => [name, exampleOf(schema as { type?: unknown })]))
}

async function connect(): Promise<Client> {
  const options: ClientOptions = { capabilities: { elicitation: { form: { applyDefaults: true } } } }
  if (version === '2026-07-28') options.versionNegotiation = { mode: 'auto' }
  const client = new Client({ name: 'mcp-host-conformance', version: '1.0.0' }, options)
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept' as const, content: {} }))
  const authFetch = createAuthFetch({ ...(IDENTITIES[scenario] ?? usual), serverUrl })
  await client.connect(new StreamableHTTPClientTransport(new URL(serverUrl), { fetch: authFetch }))
  return client
}

/** The calls that a scenario wants: its own, or one of each tool. */
function callsOf(tools: readonly Tool[]): Array<{ name: string; arguments: Record<string, unknown> }> {
  if (about.toolCalls) return [...about.toolCalls]
  // A tool whose schema points elsewhere is listed to see whether anybody follows; there is nothing to call.
  if (scenario === 'json-schema-ref-no-deref') return []
  const echoed = tools.find(({ name }) => name === 'json_schema_2020_12_tool')?.inputSchema
  if (echoed) return [{ name: 'json_schema_echo', arguments: { schema: echoed } }]
  return tools.map(tool => ({ name: tool.name, arguments: argumentsFor(tool) }))
}

/** The official client refuses a result that this tool gives; the scenario asks only that it does not try again. */
const REFUSED = 'test_mrtr_no_result_type'

/** Lists and uses what the server offers. */
async function useServer(client: Client): Promise<void> {
  const offered = client.getServerCapabilities() ?? {}
  const { tools } = await client.listTools()
  for (const call of callsOf(tools)) {
    const called = client.callTool(call)
    await (call.name === REFUSED ? called.catch(() => undefined) : called)
  }
  if (offered.resources) {
    const { resources } = await client.listResources()
    for (const { uri } of resources) await client.readResource({ uri })
  }
  if (offered.prompts) {
    const { prompts } = await client.listPrompts()
    for (const { name } of prompts) await client.getPrompt({ name })
  }
}

const client = await connect()
await useServer(client)
await client.close()
