// Tests examples/bridge: validation with the documented environment and the OAuth discovery flow, without Entra.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { runCli, startCli, stopAll } from '../cli/run-cli.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { freePort } from '../support/free-port.ts'

const ROOT = join(import.meta.dirname, '../..')
const CONFIG = join(ROOT, 'examples/bridge/mcp.config.ts')
const GROUP = '5c0e7d13-0000-4000-8000-aa00bb11cc22'

const ENVIRONMENT: Readonly<Record<string, string>> = {
  PUBLIC_URL: 'https://mcp.acme.example',
  ENTRA_TENANT: '8f1c2b7a-0000-4000-8000-3b1f6f0c9d11',
  ENTRA_CLIENT_ID: '2d9a41e6-0000-4000-8000-77c1a2b3c4d5',
  ENTRA_CLIENT_SECRET: 'of the application at the provider',
  ALLOWED_GROUPS: `${GROUP}, ${GROUP.replace('5c', '6c')}`,
  MCP_HOST_SECRETS: 'a-secret-for-tests-that-is-long-enough',
}

const envFile = (variables: Readonly<Record<string, string>>) =>
  Object.entries(variables)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('')

async function check(variables: Readonly<Record<string, string>>) {
  const folder = await makeFolder({ '.env': envFile(variables) })
  return runCli(['check', '--config', CONFIG, '--env-file', '.env'], folder)
}

describe('examples/bridge', () => {
  after(async () => {
    await stopAll()
    await removeFolders()
  })

  it('passes `mcp-host check` with the documented environment variables', async () => {
    const { code, stderr } = await check(ENVIRONMENT)
    expect(code, stderr).to.equal(0)
    const page = readFileSync(join(ROOT, 'examples/bridge/README.md'), 'utf8')
    for (const name of Object.keys(ENVIRONMENT)) expect(page).to.include(`\`${name}\``)
  })

  it('reports missing and invalid environment variables', async () => {
    const { ENTRA_CLIENT_SECRET: _, ...without } = ENVIRONMENT
    const missing = await check(without)
    expect(missing.code).to.not.equal(0)
    expect(missing.stderr).to.include('ENTRA_CLIENT_SECRET is not set')
    const common = await check({ ...ENVIRONMENT, ENTRA_TENANT: 'common' })
    expect(common.code).to.equal(2)
    expect(common.stderr).to.match(/"common"/)
    const plain = await check({ ...ENVIRONMENT, PUBLIC_URL: 'http://mcp.acme.example' })
    expect(plain.code).to.equal(2)
    expect(plain.stderr).to.include('codes and cookies would go over plain http')
  })

  it('directs a client without a token to its authorization server, with PKCE and client registration', async () => {
    const port = await freePort()
    const folder = await makeFolder({ '.env': envFile({ ...ENVIRONMENT, PORT: String(port) }) })
    const running = startCli(['start', '--config', CONFIG, '--env-file', '.env', '--log-format', 'json'], folder)
    const url = await running.listening()
    const origin = new URL(url).origin
    const refused = await fetch(`${origin}/mcp`, { method: 'POST' })
    expect(refused.status).to.equal(401)
    const challenge = refused.headers.get('www-authenticate') ?? ''
    expect(challenge).to.include('https://mcp.acme.example/.well-known/oauth-protected-resource/mcp')
    const resource = (await (await fetch(`${origin}/.well-known/oauth-protected-resource/mcp`)).json()) as object
    expect(resource).to.deep.include({ authorization_servers: ['https://mcp.acme.example/auth'] })
    const server = (await (await fetch(`${origin}/.well-known/oauth-authorization-server/auth`)).json()) as object
    expect(server).to.deep.include({
      issuer: 'https://mcp.acme.example/auth',
      registration_endpoint: 'https://mcp.acme.example/auth/register',
      code_challenge_methods_supported: ['S256'],
      client_id_metadata_document_supported: true,
    })
    running.child.kill('SIGTERM')
    expect((await running.ended).code).to.equal(0)
  })
})
