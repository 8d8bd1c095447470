// A server for users who sign in with Microsoft Entra ID. README.md lists the environment variables.
import { defineConfig, defineTool, ToolError } from 'mcp-host'
import { entra } from 'mcp-host/auth-bridge'

/** `mcp-host check` reports missing variables. */
function readVariable(name: string): string {
  const value = process.env[name]?.trim()
  if (value === undefined || value === '')
    throw new Error(`Environment variable ${name} is not set. See README.md next to the config.`)
  return value
}

const parseList = (text: string): string[] => text.split(/[\s,]+/).filter(entry => entry !== '')

const myProfile = defineTool({
  name: 'my_profile',
  description: 'Returns your profile from Microsoft Graph.',
  annotations: { readOnlyHint: true },
  async handler(_, { fetch, upstreamToken }) {
    const token = await upstreamToken()
    const response = await fetch('https://graph.microsoft.com/v1.0/me?$select=displayName,jobTitle,officeLocation', {
      headers: { Authorization: `Bearer ${token}` },
    })
    if (!response.ok) throw new ToolError(`Microsoft Graph returned status ${response.status}.`)
    const { displayName, jobTitle, officeLocation } = (await response.json()) as Record<string, unknown>
    return { content: [{ type: 'text', text: JSON.stringify({ displayName, jobTitle, officeLocation }) }] }
  },
})

const publicUrl = readVariable('PUBLIC_URL')

export default defineConfig({
  server: { name: 'bridge-example', version: '1.0.0' },
  http: {
    port: Number(process.env['PORT'] ?? 3000),
    publicUrl,
    // The host does not terminate TLS, so an https URL requires one proxy.
    trustProxy: publicUrl.startsWith('https:') ? 1 : false,
  },

  toolsets: { clock: '../clock/clock.ts', company: [myProfile] },
  routes: { '/mcp': { toolsets: ['clock', 'company'], authorize: { scope: 'mcp.tools' } } },

  plugins: {
    'transport-streamable': {},
    'auth-bridge': {
      provider: entra({
        tenant: readVariable('ENTRA_TENANT'),
        clientId: readVariable('ENTRA_CLIENT_ID'),
        clientSecret: readVariable('ENTRA_CLIENT_SECRET'),
      }),
      // Group ids, separated by commas.
      allow: { groups: parseList(readVariable('ALLOWED_GROUPS')) },
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
    // Verifies the tokens of this host, and tells clients how to get them.
    'auth-jwt': {},
    'resource-metadata': { scopesSupported: ['mcp.tools'] },
    health: {},
  },
})
