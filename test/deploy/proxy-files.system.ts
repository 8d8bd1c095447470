// Tests that nginx and Caddy accept the files of examples/deploy, and that nginx settings match examples/scaling
// everywhere.
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { examine } from '../../cli/doctor/examine.ts'
import { defineTool } from '../../core/index.ts'
import { readBlocks, readPage } from '../support/doc-blocks.ts'
import { freePort } from '../support/free-port.ts'
import { needsProgram } from '../support/needs-program.ts'
import { modernRequest } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import {
  adaptCaddyfile,
  caddyEnv,
  makeCertificate,
  nginxCommand,
  ownFolder,
  readExample,
  removeFolders,
  replaced,
  startListening,
  writeNginx,
} from './support/processes.ts'

const run = promisify(execFile)
const MCP_CONF = readExample('deploy/nginx/mcp.conf')
const COMPOSED = readExample('deploy/docker/nginx.conf')
/** A test's own output may be a pipe, which cannot be opened by that name. */
const COMPOSED_HERE = replaced(COMPOSED, [['/dev/stdout', 'mcp.log']])
const CADDYFILE = new URL('../../examples/deploy/caddy/Caddyfile', import.meta.url).pathname
const NAME = 'mcp.acme.example'

after(async () => {
  await stopHosts()
  removeFolders()
})

/** What `nginx -t` says of it. */
async function nginxSays(text: string, folder = ownFolder()): Promise<string> {
  const [program = '', ...args] = nginxCommand(writeNginx(text, folder))
  const { stdout, stderr } = await run(program, [...args, '-t']).catch(error => error)
  return `${stdout}${stderr}`
}

/** With a certificate and a log of this test. */
function withFiles(folder: string): string {
  const { cert, key } = makeCertificate(folder, NAME)
  return replaced(MCP_CONF, [
    [`/etc/ssl/${NAME}.pem`, cert],
    [`/etc/ssl/${NAME}.key`, key],
    ['/var/log/nginx/mcp.log', join(folder, 'mcp.log')],
  ])
}

/** Directives of a block, one a line, without comments; each occurs once in a file. */
function directivesOf(text: string, block: RegExp): string[] {
  const [, inside] = block.exec(text) ?? []
  if (inside === undefined) throw new Error(`no ${block} in it`)
  const lines = inside.split('\n').map(line => line.replace(/^\s*(#.*)?/, '').replaceAll(/\s+/g, ' '))
  return lines.filter(line => line !== '').sort()
}

const LOCATION = /location \/ \{([^}]*)\}/
const UPSTREAM = /upstream mcp_nodes \{([^}]*)\}/
const withoutPlace = (lines: readonly string[]) => lines.filter(line => !/^(proxy_pass|set|server) /.test(line))

describe('nginx configuration files', () => {
  before(function () {
    needsProgram(this, 'nginx', 'apt-get install nginx')
  })

  it('accepts examples/deploy/nginx/mcp.conf', async () => {
    const folder = ownFolder()
    expect(await nginxSays(withFiles(folder), folder)).to.match(/syntax is ok\n.*test is successful\n$/)
  })

  it('accepts examples/deploy/docker/nginx.conf', async () => {
    expect(await nginxSays(COMPOSED_HERE)).to.match(/syntax is ok\n.*test is successful\n$/)
  })

  it('reports an unknown directive and an invalid value', async () => {
    const wrong = (from: string, to: string) => nginxSays(replaced(COMPOSED_HERE, [[from, to]]))
    expect(await wrong('proxy_buffering off', 'proxy_bufering off')).to.include('unknown directive "proxy_bufering"')
    expect(await wrong('proxy_read_timeout 60s', 'proxy_read_timeout sixty')).to.include('invalid value')
  })

  it('examples/deploy/nginx/mcp.conf serves a call over TLS and logs no query string', async () => {
    const folder = ownFolder()
    const tool = defineTool({ name: 'one', input: { type: 'object' }, handler: () => 'one' })
    const routes = { '/mcp': { toolsets: 'main' } }
    const http = { publicUrl: `https://${NAME}`, trustProxy: 1 }
    const host = await startHost({ toolsets: { main: [tool] }, routes, http })
    const port = await freePort()
    const text = replaced(withFiles(folder), [
      ['listen 443 ', `listen 127.0.0.1:${port} `],
      ['127.0.0.1:3001', new URL(host.url).host],
    ])
    const proxy = await startListening(nginxCommand(writeNginx(text, folder)), port)
    const { headers, body } = modernRequest('tools/call', { name: 'one', arguments: {} })
    const sent = {
      Host: NAME,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      ...headers,
    }
    const ca = readFileSync(join(folder, 'proxy.pem'))
    const answer = await new Promise<string>((resolve, reject) => {
      const options = {
        port,
        host: '127.0.0.1',
        servername: NAME,
        ca,
        method: 'POST',
        path: '/mcp?code=secret',
        headers: sent,
      }
      request(options as object, async res => resolve(await textOf(res)))
        .on('error', reject)
        .end(body)
    })
    expect(JSON.parse(answer).result.content[0].text).to.equal('one')
    await proxy.stop()
    const logged = readFileSync(join(folder, 'mcp.log'), 'utf8')
    expect(logged)
      .to.match(/"POST \/mcp" 200/)
      .and.not.include('secret')
  })
})

describe('nginx settings for a path prefix in docs/operating.md', () => {
  before(function () {
    needsProgram(this, 'nginx', 'apt-get install nginx')
  })

  it('serve all metadata URLs, as doctor confirms', async () => {
    const port = await freePort()
    const publicUrl = `http://127.0.0.1:${port}/tools`
    const issuer = `${publicUrl}/dev-auth`
    const host = await startHost({
      toolsets: { main: [] },
      routes: { '/': { toolsets: 'main', authorize: true }, '/mcp': { toolsets: 'main', authorize: true } },
      http: { publicUrl, trustProxy: 1 },
      plugins: {
        'transport-streamable': {},
        'auth-jwt': { authority: issuer },
        'resource-metadata': { authorizationServers: [issuer] },
        'dev-auth-server': {},
      },
    })
    const block = readBlocks('docs/operating.md').find(({ code }) => code.includes('location /tools/'))
    const text = replaced(block?.code ?? '', [
      ['listen 443 ssl;', `listen 127.0.0.1:${port};`],
      [/^ *ssl_.*\n/, ''],
      ['127.0.0.1:3000', new URL(host.url).host],
    ])
    const proxy = await startListening(nginxCommand(writeNginx(text)), port)
    for (const url of [publicUrl, `${publicUrl}/mcp`]) {
      const findings = await examine(url)
      expect(findings.find(({ check }) => check === 'address')?.text).to.equal(`${url} responds with 401`)
      expect(findings.filter(({ level, check }) => level !== 'ok' && /metadata|identity/.test(check))).to.deep.equal([])
    }
    await proxy.stop()
  })
})

describe('nginx settings match examples/scaling', () => {
  const truth = readExample('scaling/nginx.conf')

  for (const [name, text] of [
    ['examples/deploy/nginx/mcp.conf', MCP_CONF],
    ['examples/deploy/docker/nginx.conf', COMPOSED],
    ['docs/operating.md', readPage('docs/operating.md')],
  ] as const) {
    it(`location settings in ${name}`, () => {
      expect(withoutPlace(directivesOf(text, LOCATION))).to.deep.equal(withoutPlace(directivesOf(truth, LOCATION)))
      expect(text).to.include('client_max_body_size 4m;')
    })
  }

  it('upstream settings in examples/deploy/nginx/mcp.conf and docs/scaling.md', () => {
    const expected = withoutPlace(directivesOf(truth, UPSTREAM))
    expect(withoutPlace(directivesOf(MCP_CONF, UPSTREAM))).to.deep.equal(expected)
    expect(withoutPlace(directivesOf(readPage('docs/scaling.md'), UPSTREAM))).to.deep.equal(expected)
    for (const [line] of MCP_CONF.matchAll(/server 127.*;/g)) expect(line).to.include('max_fails=1 fail_timeout=1s')
  })

  it('annotations of the Kubernetes ingress', () => {
    const ingress = readExample('deploy/kubernetes/ingress.yaml')
    const annotated = (name: string) => new RegExp(`/${name}: '?([^'\n]*)'?$`, 'm').exec(ingress)?.[1]
    const lines = directivesOf(truth, LOCATION)
    for (const name of ['buffering', 'read-timeout', 'send-timeout', 'connect-timeout', 'next-upstream'] as const) {
      const value = annotated(`proxy-${name}`)?.replace(/^\d+$/, '$&s')
      expect(lines).to.include(`proxy_${name.replaceAll('-', '_')} ${value};`)
    }
    expect(truth).to.include(`client_max_body_size ${annotated('proxy-body-size')};`)
  })
})

describe('Caddy configuration file', () => {
  before(function () {
    needsProgram(this, 'caddy', 'apt-get install caddy')
  })

  it('accepts examples/deploy/caddy/Caddyfile without a warning', async () => {
    const folder = ownFolder()
    const env = { ...caddyEnv(folder, { site: '', nodes: [] }) }
    delete env['MCP_SITE']
    delete env['MCP_NODES']
    const { stdout, stderr } = await run('caddy', ['validate', '--config', CADDYFILE, '--adapter', 'caddyfile'], {
      env,
    })
    expect(`${stdout}${stderr}`)
      .to.include('Valid configuration')
      .and.not.match(/deprecated|not formatted/i)
    const text = JSON.stringify(adaptCaddyfile(CADDYFILE, env))
    for (const part of ['mcp.acme.example', '127.0.0.1:3001', '127.0.0.1:3002', 'round_robin'])
      expect(text).to.include(part)
  })

  it('retries only methods without a body and buffers no request body', () => {
    const env = caddyEnv(ownFolder(), { site: 'http://a.example:8080', nodes: ['127.0.0.1:1'] })
    const text = JSON.stringify(adaptCaddyfile(CADDYFILE, env))
    expect(text).to.not.match(/buffer_requests|request_buffers|max_buffer_size|retry_match/)
    // Two proxies: what has no body is tried again, and alone.
    expect(text.match(/"handler":"reverse_proxy"/g)).to.have.lengthOf(2)
    expect(text.match(/"try_duration"/g)).to.have.lengthOf(1)
    expect(text).to.include('"method":["GET","HEAD","DELETE","OPTIONS"]')
  })

  it('reports an unknown directive', async () => {
    const folder = ownFolder()
    const file = join(folder, 'Caddyfile')
    writeFileSync(file, replaced(readExample('deploy/caddy/Caddyfile'), [['lb_try_duration', 'lb_tri_duration']]))
    const said = () => adaptCaddyfile(file, caddyEnv(folder, { site: 'http://a.example', nodes: ['127.0.0.1:1'] }))
    expect(said).to.throw(/unrecognized subdirective lb_tri_duration/)
  })
})
