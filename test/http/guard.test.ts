// Tests the Host and Origin rules for loopback and other bind addresses.
import { expect } from 'chai'
import { buildConfigSchema } from '../../core/config/config-schema.ts'
import type { FilledConfig, HttpSettings } from '../../core/config/define-config.ts'
import { resolveHttp } from '../../core/config/resolve-settings.ts'
import { fillDefaults } from '../../core/config/walk-schema.ts'
import { HostError } from '../../core/http/errors.ts'
import { createGuard } from '../../core/http/guard.ts'

interface Asked {
  readonly host?: string | undefined
  readonly origin?: string
}

const filled = (http: HttpSettings) => (fillDefaults({ http }, buildConfigSchema({})) as FilledConfig).http

/** What the guard with these settings says to a request: the kind of its refusal, or 'passes'. */
function judge(http: HttpSettings, { host, origin }: Asked): string {
  try {
    createGuard(resolveHttp(filled(http)))({ hosts: [host], origin })
    return 'passes'
  } catch (error) {
    if (HostError.is(error)) return error.kind
    throw error
  }
}

const LOOPBACK_BINDS = ['127.0.0.1', '127.0.0.53', 'localhost', '::1']
const OTHER_BINDS = ['0.0.0.0', '::', '192.168.1.5', 'mcp.internal']

describe('Host and Origin rules on a loopback bind', () => {
  it('accept loopback hosts with any port, ignoring case', () => {
    const hosts = [
      'localhost',
      'app.localhost',
      'a.b.localhost:3000',
      'localhost:3000',
      'LocalHost:80',
      '127.0.0.1',
      '127.0.0.1:3000',
      '127.1.2.3',
      '[::1]:9',
    ]
    for (const bind of LOOPBACK_BINDS) {
      for (const host of hosts) expect(judge({ host: bind }, { host }), `${bind} ${host}`).to.equal('passes')
    }
  })

  it('reject other hosts, including names similar to loopback', () => {
    const hosts = [
      'evil.example',
      'evil.example:3000',
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      'evil.example#localhost',
      'localhost@evil.example',
      'notlocalhost',
      '0.0.0.0:3000',
      '192.168.1.5',
      '[::2]:3000',
      '[::ffff:10.0.0.1]',
    ]
    for (const host of hosts) expect(judge({}, { host }), host).to.equal('hostNotAllowed')
  })

  it('reject a malformed, empty or missing Host', () => {
    const malformed = [
      '',
      ' ',
      ':3000',
      'localhost:',
      'localhost:port',
      'localhost:1234567',
      'localhost/x',
      '[::1',
      '::1',
    ]
    for (const host of [...malformed, 'localhost, evil.example', 'http://localhost', 'local host', undefined]) {
      expect(judge({}, { host }), host).to.equal('hostNotAllowed')
    }
  })

  it('accept http and https loopback origins on any port, and requests without Origin', () => {
    const host = 'localhost'
    expect(judge({}, { host })).to.equal('passes')
    for (const origin of [
      'http://localhost',
      'http://app.localhost:5173',
      'http://localhost:5173',
      'https://127.0.0.1:8443',
      'http://[::1]:3000',
    ]) {
      expect(judge({}, { host, origin }), origin).to.equal('passes')
    }
  })

  it('reject other origins', () => {
    const origins = [
      'https://evil.example',
      'http://localhost.evil.example',
      'http://127.0.0.1.evil.example',
      'http://localhost@evil.example',
      'http://localhost/',
      'http://localhost/path',
      'localhost',
      'file://localhost',
      'chrome-extension://localhost',
      'null',
      '',
      'http://localhost, https://evil.example',
    ]
    for (const origin of origins) expect(judge({}, { host: 'localhost', origin }), origin).to.equal('originNotAllowed')
  })

  it('also accept publicUrl and the configured lists', () => {
    const http = {
      publicUrl: 'https://mcp.acme.example:8443/base',
      allowedHosts: ['Tunnel.Example', 'exact.example:81'],
      allowedOrigins: ['https://app.acme.example', 'https://ported.example:444/'],
    }
    const hosts = [
      'mcp.acme.example',
      'mcp.acme.example:8443',
      'MCP.acme.example',
      'tunnel.example:9',
      'exact.example:81',
    ]
    for (const host of [...hosts, 'localhost']) expect(judge(http, { host }), host).to.equal('passes')
    expect(judge(http, { host: 'exact.example:82' })).to.equal('hostNotAllowed')
    const origins = ['https://mcp.acme.example:8443', 'https://app.acme.example', 'https://ported.example:444']
    for (const origin of [...origins, 'http://localhost']) {
      expect(judge(http, { host: 'localhost', origin }), origin).to.equal('passes')
    }
    for (const origin of ['http://app.acme.example', 'https://mcp.acme.example', 'https://x.app.acme.example']) {
      expect(judge(http, { host: 'localhost', origin }), origin).to.equal('originNotAllowed')
    }
  })
})

describe('Host and Origin rules on other binds', () => {
  it('accept any Host and reject any Origin without publicUrl and lists', () => {
    for (const host of OTHER_BINDS) {
      for (const name of ['anything.example', '10.1.2.3:3000', 'localhost']) {
        expect(judge({ host }, { host: name })).to.equal('passes')
        for (const origin of [`http://${name}`, 'http://localhost', 'null', '']) {
          expect(judge({ host }, { host: name, origin })).to.equal('originNotAllowed')
        }
      }
    }
  })

  it('accept only the host and origin of publicUrl, not loopback', () => {
    const http = { host: '0.0.0.0', publicUrl: 'https://mcp.acme.example/mcp' }
    const host = 'mcp.acme.example'
    expect(judge(http, { host })).to.equal('passes')
    expect(judge(http, { host, origin: 'https://mcp.acme.example' })).to.equal('passes')
    for (const origin of ['http://mcp.acme.example', 'http://localhost:5173', 'https://evil.example']) {
      expect(judge(http, { host, origin }), origin).to.equal('originNotAllowed')
    }
    for (const other of ['localhost:3000', '127.0.0.1', 'evil.example', undefined]) {
      expect(judge(http, { host: other }), other).to.equal('hostNotAllowed')
    }
  })

  it('accept the configured lists', () => {
    const listed = { host: '0.0.0.0', allowedHosts: ['a.example'] }
    expect(judge(listed, { host: 'a.example:3000' })).to.equal('passes')
    expect(judge(listed, { host: 'b.example' })).to.equal('hostNotAllowed')
    expect(judge(listed, { host: 'a.example', origin: 'http://a.example' })).to.equal('originNotAllowed')
    const origins = { host: '0.0.0.0', allowedOrigins: ['https://app.example'] }
    expect(judge(origins, { host: 'any.example', origin: 'https://app.example' })).to.equal('passes')
    expect(judge(origins, { host: 'any.example', origin: 'https://b.example' })).to.equal('originNotAllowed')
  })
})
