// What an authorization server offers to clients: who they can be there, and what they need not do without.
import type { ServerInfo } from '../../client/parties.ts'
import { type Finding, note, ok, wrong } from './finding.ts'

const METHODS = ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt']

/** The ways to be a client, in the order in which they are tried (MCP authorization, "Client Registration Approaches"). */
function examineRegistration({
  issuer,
  registrationEndpoint,
  clientIdMetadataDocumentSupported: documents,
}: ServerInfo): Finding {
  const ways = [
    documents && 'client id metadata documents (clientMetadataDocumentUri, login --client-metadata)',
    registrationEndpoint !== undefined && 'dynamic registration',
  ].filter(way => way !== false)
  if (ways.length > 0) return ok('client: registration', `${issuer} takes ${ways.join(', and ')}`)
  return note(
    'client: registration',
    `${issuer} registers nobody by itself`,
    'have a client registered by its operator; set clientId (login --client-id)',
  )
}

function examineMethods({ issuer, tokenEndpointAuthMethodsSupported: listed }: ServerInfo): Finding {
  const check = 'client: authentication'
  if (listed === undefined)
    return ok(check, `${issuer} lists no methods: client_secret_basic, and none for public clients`)
  const able = listed.filter(method => METHODS.includes(method))
  if (able.length === 0) {
    return wrong(
      check,
      `${issuer} takes only ${listed.join(', ')} at its token endpoint`,
      `let it take one of ${METHODS.join(', ')}, or do it yourself in clientAuthentication`,
    )
  }
  if (able.includes('none'))
    return ok(check, `public clients, and ${able.filter(method => method !== 'none').join(', ') || 'no others'}`)
  return note(check, `no public clients: every client needs a secret or a key (${able.join(', ')})`)
}

function examineRefresh({ issuer, grantTypesSupported: grants, scopesSupported }: ServerInfo): Finding {
  const check = 'client: renewal'
  if (grants !== undefined && !grants.includes('refresh_token')) {
    return note(
      check,
      `${issuer} gives no refresh tokens: people log in again when a token ends`,
      'allow the grant refresh_token there',
    )
  }
  const offline = scopesSupported?.includes('offline_access') ? '; offline_access is asked for' : ''
  return ok(check, grants === undefined ? `grants are not listed${offline}` : `refresh tokens${offline}`)
}

function examineResponse({ issuer, issParameterSupported }: ServerInfo): Finding {
  const check = 'client: response'
  if (issParameterSupported) return ok(check, 'responses name their issuer (RFC 9207)')
  return note(
    check,
    `responses of ${issuer} do not name their issuer: one server's could pass for another's`,
    'switch on authorization_response_iss_parameter_supported there',
  )
}

/** Of a server whose metadata a client accepts; `tried`: where it was looked for. */
export function examineServer(server: ServerInfo, tried: string): Finding[] {
  const { issuer, metadataUrl, legacy } = server
  if (legacy) {
    return [
      note(
        'client: issuer',
        `${issuer} publishes no metadata [looked at ${tried}]: clients use /authorize, /token and /register of it`,
        'publish /.well-known/oauth-authorization-server there',
      ),
    ]
  }
  return [
    ok('client: issuer', `${issuer}, by ${metadataUrl} [looked at ${tried}]`),
    ok('client: pkce', 'S256'),
    examineRegistration(server),
    examineMethods(server),
    examineRefresh(server),
    examineResponse(server),
  ]
}
