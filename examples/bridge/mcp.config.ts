// A server that a company's people sign in to with Microsoft Entra ID. Everything that differs from company to company is in
// the environment; README.md beside this file says what goes where.
import { defineConfig, defineTool, ToolError } from 'mcp-host'
import { entra } from 'mcp-host/auth-bridge'

/** `mcp-host check` says what is missing. */
function needed(name: string): string {
  const value = process.env[name]?.trim()
  if (value === undefined || value === '')
    throw new Error(`${name} is not set; README.md beside the config says to what`)
  return value
}

const list = (text: string): string[] => text.split(/[\s,]+/).filter(one => one !== '')

const myProfile = defineTool({
  name: 'my_profile',
  description: 'Who you are at your company, as Microsoft Graph says it.',
  annotations: { readOnlyHint: true },
  async handler(_, { fetch, upstreamToken }) {
    const token = await upstreamToken()
    const response = await fetch('https://graph.microsoft.com/v1.0/me?$select=displayName,jobTitle,officeLocation', {
      headers: { Authorization: `Bearer ${token}` },
    })
    if (!response.ok) throw new ToolError(`Microsoft Graph answers ${response.status}.`)
    const { displayName, jobTitle, officeLocation } = (await response.json()) as Record<string, unknown>
    return { content: [{ type: 'text', text: JSON.stringify({ displayName, jobTitle, officeLocation }) }] }
  },
})

const publicUrl = needed('PUBLIC_URL')

export default defineConfig({
  server: { name: 'bridge-example', version: '1.0.0' },
  http: {
    port: Number(process.env['PORT'] ?? 3000),
    publicUrl,
    // This host does no TLS: where people use https, one proxy is in front.
    trustProxy: publicUrl.startsWith('https:') ? 1 : false,
  },

  toolsets: { clock: '../clock/clock.ts', company: [myProfile] },
  routes: { '/mcp': { toolsets: ['clock', 'company'], authorize: { scope: 'mcp.tools' } } },

  plugins: {
    'transport-streamable': {},
    'auth-bridge': {
      provider: entra({
        tenant: needed('ENTRA_TENANT'),
        clientId: needed('ENTRA_CLIENT_ID'),
        clientSecret: needed('ENTRA_CLIENT_SECRET'),
      }),
      // Ids of groups, with commas between them.
      allow: { groups: list(needed('ALLOWED_GROUPS')) },
      clients: {
        redirects: [
          'http://127.0.0.1:*/**',
          'http://[::1]:*/**',
          'http://localhost:*/**',
          'https://vscode.dev/redirect',
          'https://insiders.vscode.dev/redirect',
        ],
      },
      page: { name: process.env['SERVICE_NAME'] ?? 'Company tools' },
    },
    // Takes the tokens of this host, and tells clients where they get them.
    'auth-jwt': {},
    'resource-metadata': { scopesSupported: ['mcp.tools'] },
    health: {},
  },
})
